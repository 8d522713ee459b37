"""Stops `kubexm.pyz` with a plain sentence on a Python it carries no compiled modules for."""

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

_FOUND = sorted(Path(__file__).parents[1].glob("msgspec/_core.*.so"))

if not any(module.name.endswith(EXTENSION_SUFFIXES[0]) for module in _FOUND):
    sys.exit(
        f"error: kubexm.pyz does not run on this Python ({EXTENSION_SUFFIXES[0]})\n"
        f"  it was made for {', '.join(module.name.split('.')[1] for module in _FOUND)}\n\n"
        "hint: start it with one of those (`python3.12 kubexm.pyz ...`),"
        " or run `make dist` on a machine like this one"
    )
