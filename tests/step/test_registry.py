"""Kinds of steps are known by name, and loaded when they are asked for."""

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

import kubexm.step
from kubexm.step import registry
from kubexm.step.contract import Step

LOADED = """
import sys
from kubexm.step import registry
assert "file" in registry.kinds()
registry.find("command")
print(*(name for name in sys.modules if name.startswith("kubexm.step.")))
"""


def test_every_kind_is_known_before_its_module_is_loaded() -> None:
    modules = [
        f"kubexm.step.{module.name}" for module in pkgutil.iter_modules(kubexm.step.__path__)
    ]
    for module in modules:
        import_module(module)

    found = {kind: cls.__module__ for kind, cls in registry._KINDS.items()}

    ours = {kind: module for kind, module in found.items() if module in modules}
    assert ours == {kind: f"kubexm.step.{home}" for kind, home in registry._HOMES.items()}


def test_what_no_pipeline_names_is_not_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )

    names = {name.removeprefix("kubexm.step.") for name in done.stdout.split()}
    assert names == {"commands", "contract", "parameters", "registry"}


def test_a_kind_has_one_class() -> None:
    class Mine(Step):
        pass

    with pytest.raises(TypeError, match="two step classes have the kind `file`"):
        registry.step("file")(Mine)
