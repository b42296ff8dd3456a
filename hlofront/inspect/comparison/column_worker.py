"""The worker process of `compare`: it writes the column of one FILE:FUNCTION to a file."""

import json
import pathlib
import sys

from hlofront.inspect.comparison.columns import here
from hlofront.inspect.target import UsageError, arguments_for, load_function
from hlofront.jax_names.import_hook import open_names


def main() -> int:
    open_names()
    answer, label, target_function, target, *specs = sys.argv[1:]
    try:
        function, module = load_function(target_function)
        args = arguments_for(function, module, target_function, specs[0] if specs else None)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    column = here(label, function, args, target or None)
    pathlib.Path(answer).write_text(json.dumps(column._asdict()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
