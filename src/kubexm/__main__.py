"""`python -m kubexm` is `kubexm`."""

import sys

from kubexm.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
