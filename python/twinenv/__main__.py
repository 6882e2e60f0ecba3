"""`python -m twinenv` is the `twinenv` command."""

import sys

from twinenv.cli import main

sys.exit(main())
