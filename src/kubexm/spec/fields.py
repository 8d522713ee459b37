"""The words of a pipeline file alone: variables, roles, conditions, lists to go over."""

from __future__ import annotations

import re
from typing import Annotated, Any

from kubexm.common.roles import ALL, CONTROL_NODE
from kubexm.document.fields import InSchema, Name
from kubexm.document.findings import shown
from kubexm.document.forms import After, BadValue, Before

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")


def _variable(text: str) -> str:
    if _VARIABLE.fullmatch(text):
        return text
    hint = "use letters, digits, `_` and `-`, a letter first: dots lead down into a variable"
    raise BadValue(f"found `{text[:40]}`, want the name of a variable", hint)


def _own_role(text: str) -> str:
    if text in (ALL, CONTROL_NODE):
        raise BadValue(f"the role `{text}` is made by the program", "leave it out")
    return text


def _condition(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value:
        return value
    found = "an empty text" if value == "" else shown(value)
    hint = "write one that is true or false, such as `vars.count > 0`, or leave it out"
    raise BadValue(f"found {found}, want an expression", hint)


def _entries(value: Any) -> Any:
    if isinstance(value, list | str):
        return value
    hint = "write a list, or `${vars.NAME}` for a variable that holds one"
    raise BadValue(f"found {shown(value)}, want a list", hint)


VariableName = Annotated[str, After(_variable)]
OwnRole = Annotated[Name, After(_own_role)]
Condition = Annotated[str, Before(_condition), InSchema('{"type": ["string", "boolean"]}')]
Entries = Annotated[list[Any] | str, Before(_entries)]
