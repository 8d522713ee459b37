"""What the sources say about a class and its fields: the texts under their names."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys

_EXAMPLE = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def field_texts(cls: type) -> dict[str, str]:
    """The text under each field of a class and of those it derives from."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("kubexm."):
            texts.update(_texts(base.__module__).get(base.__qualname__, {}))
    return texts


def class_text(cls: type) -> str:
    """What a class says of itself, or else the nearest one it derives from; no example."""
    return _EXAMPLE.sub("", inspect.getdoc(cls) or "").strip()


def class_example(cls: type) -> str:
    """The YAML in what a class says of itself, if there is any."""
    found = _EXAMPLE.search(inspect.getdoc(cls) or "")
    return found[1] if found else ""


@functools.cache
def _texts(module: str) -> dict[str, dict[str, str]]:
    """The texts under the fields of every class of a module."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: _own_texts(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _own_texts(tree: ast.ClassDef) -> dict[str, str]:
    texts = {}
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str() as said)),
            ):
                texts[name] = " ".join(said.split())
    return texts
