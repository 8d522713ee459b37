"""`python -m kubexm` is `kubexm`."""

from kubexm.cli.main import main

if __name__ == "__main__":
    main()
