"""What the sources say about the fields of a class: the texts under their names."""

from __future__ import annotations

import ast
import inspect
import textwrap


def field_texts(cls: type) -> dict[str, str]:
    """The text under each field of a class and of those it derives from."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("kubexm."):
            texts.update(_own_texts(base))
    return texts


def class_text(cls: type) -> str:
    """What a class says of itself, or else the nearest one it derives from."""
    return inspect.getdoc(cls) or ""


def _own_texts(cls: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(tree, ast.ClassDef)
    texts = {}
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str() as said)),
            ):
                texts[name] = " ".join(said.split())
    return texts
