"""The worker process of `compare`: it writes the column of one FILE:FUNCTION to a file."""

import json
import pathlib
import sys

from hlofront.inspect.comparison.columns import here
from hlofront.inspect.target import UsageError, load_call


def main() -> int:
    answer, label, target_function, target, *specs = sys.argv[1:]
    try:
        function, args = load_call(target_function, specs[0] if specs else None)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    column = here(label, function, args, target or None)
    pathlib.Path(answer).write_text(json.dumps(column._asdict()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
