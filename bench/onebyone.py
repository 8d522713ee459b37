"""The command line of kubexm, with a precheck made when it is the turn of its step, not ahead."""

from __future__ import annotations

from functools import partial

from kubexm.app import runs
from kubexm.cli.main import main
from kubexm.engine import Options

if __name__ == "__main__":
    # No user needs this, so there is no flag for it.
    runs.Options = partial(Options, probe_ahead=0)  # type: ignore[attr-defined, assignment]
    main()
