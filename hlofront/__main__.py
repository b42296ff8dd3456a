"""`python -m hlofront`: the command line."""

import sys

from hlofront.inspect.cli import main

sys.exit(main())
