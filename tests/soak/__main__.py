"""Runs a scenario, and enters the run into the record: see the package."""

import argparse
import faulthandler
import os
import subprocess
import sys
import warnings

SILENT_SECONDS = 120


def main() -> None:
    # Before hlofront is imported: its programs are run once, and XLA is to compile them quickly.
    from tests.support import quick_code  # noqa: F401

    os.environ.setdefault("HLOFRONT_CACHE", "off")
    os.environ["HLOFRONT_WARN_RECOMPILES"] = "0"
    from tests.soak import record, running, scenarios

    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("name", choices=[*scenarios.ALL, "all"])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-record", action="store_true", help="add no row to RECORD.md")
    options = parser.parse_args()
    if options.name == "all":
        others = [word for word in sys.argv[1:] if word != "all"]
        command = [sys.executable, "-m", "tests.soak"]
        # All of them run, whichever fails.
        codes = [subprocess.run([*command, name, *others]).returncode for name in scenarios.ALL]
        sys.exit(any(codes))
    warnings.simplefilter("ignore")
    outcome = running.run(
        scenarios.ALL[options.name],
        60 * options.minutes,
        options.seed,
        lambda: faulthandler.dump_traceback_later(SILENT_SECONDS, exit=True),
    )
    faulthandler.cancel_dump_traceback_later()
    print(*outcome.finds, sep="\n")
    row = record.row(options.name, options.minutes, outcome)
    print(row)
    if not options.no_record:
        record.add(row)
    sys.exit(bool(outcome.finds))


if __name__ == "__main__":
    main()
