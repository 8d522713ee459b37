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
MOMENTS = ("pre", "post", "onFailure", "always")

_STEPS = {"type": "array", "items": {"type": "object"}}
_MODULE = {
    "type": "object",
    "properties": dict.fromkeys(MOMENTS, _STEPS),
    "additionalProperties": False,
}
_ALL = {
    "type": "object",
    "description": "Steps before or after a module, by its name and the moment.",
    "properties": dict.fromkeys(MODULES, _MODULE),
    "additionalProperties": False,
}
Hooks = Annotated[dict[str, Any], InSchema(json.dumps(_ALL))]
