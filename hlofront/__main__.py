"""`python -m hlofront`: the command line."""

import sys

from hlofront.cli.main import main

sys.exit(main())
