"""Hooks of a cluster file: which modules have them, and at which moments."""

from __future__ import annotations

import json
from typing import Annotated, Any

from kubexm.document.fields import InSchema

MODULES = (
    "preflight", "assets", "system", "container-runtime", "pki", "registry", "etcd",
    "load-balancer", "control-plane", "network", "workers", "dns", "storage", "add-ons",
)  # fmt: skip
"""The parts of an operation; `pipeline` has them too, and stands above this package."""
MOMENTS = {
    "pre": "Steps before it, which is held back if one fails.",
    "post": "Steps after it, if it went well.",
    "onFailure": "Steps after it, if something in it failed.",
    "always": "Steps after all of these, whether it failed or not.",
}
"""When steps are done, and what that means."""
_STEPS = {"type": "array", "items": {"type": "object"}}
_MODULE = {
    "type": "object",
    "description": "Steps around this module, by the moment.",
    "properties": {name: {**_STEPS, "description": text} for name, text in MOMENTS.items()},
    "additionalProperties": False,
}
_ALL = {
    "type": "object",
    "description": "Steps before or after a module, by its name and the moment.",
    "properties": dict.fromkeys(MODULES, _MODULE),
    "additionalProperties": False,
}
Hooks = Annotated[dict[str, Any], InSchema(json.dumps(_ALL))]
