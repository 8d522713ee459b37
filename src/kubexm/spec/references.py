"""References in parameters: `${vars.x}`, `${facts.x.y}`, `${values.x}`, `${host.x}`, `${item}`.

A text that is one reference becomes the value itself; inside a longer text a value is written
out. `$${` stands for `${`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import msgspec

from kubexm.common.facts import FACTS
from kubexm.common.nearest import did_you_mean
from kubexm.document.source import DataPath
from kubexm.runtime.contexts import Unmade
from kubexm.spec import kinds

ROOTS = ("vars", "facts", "values", "host", "item")
LABELS = "host.labels"
MAX_TEXT = 16 * 1024 * 1024
LONGEST_TOLD = 40

_TOKEN = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_WHOLE = re.compile(r"\$\{[^{}]*\}")
_SEGMENT = re.compile(r"\.([A-Za-z0-9_-]+)|\[([0-9]+)\]")
_ROOT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class BadReference(ValueError):
    """A reference that can't be read, or that names nothing; `hint` says what to do."""

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        at_key: bool = False,
        excerpt: str = "",
        of_host: bool = False,
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.at_key = at_key
        self.excerpt = excerpt
        """How it is written."""
        self.of_host = of_host
        """Whether one host has what it names, and another does not."""


class Reference(msgspec.Struct, frozen=True):
    """What a reference names: a root and the way down from it."""

    root: str
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join((self.root, *self.path))

    @property
    def written_out(self) -> str:
        """How it is usually written."""
        return f"${{{self}}}"


Parts = tuple[str | Reference, ...]
Resolve = Callable[[Reference], Any]


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Parts:
    """The text as pieces of plain text and references; an escape is plain text already."""
    if "${" not in text:
        return (text,)
    parts: list[str | Reference] = []
    end = 0
    for token in _TOKEN.finditer(text):
        _add_text(parts, text[end : token.start()])
        end = token.end()
        if token[0] == "$${":
            _add_text(parts, "${")
        else:
            parts.append(_reference(token[1]))
    _add_text(parts, text[end:])
    return tuple(parts)


def _add_text(parts: list[str | Reference], text: str) -> None:
    if not text:
        return
    if parts and isinstance(parts[-1], str):
        parts[-1] += text
    else:
        parts.append(text)


def _reference(inner: str | None) -> Reference:
    literal = "write `$${` for a literal `${`"
    if inner is None:
        raise BadReference("`${` without its `}`", literal, excerpt="${")
    text = f"${{{inner}}}"
    root = _ROOT.match(inner)
    if root is None or root[0] not in ROOTS:
        hint = did_you_mean(root[0] if root else inner, ROOTS)
        message = f"`{text}` is no reference: unknown root"
        raise BadReference(message, f"{literal}; {hint}", excerpt=text)
    path, position = [], root.end()
    while position < len(inner):
        segment = _SEGMENT.match(inner, position)
        if segment is None:
            hint = "write names with dots, such as `${vars.app.port}`"
            raise BadReference(f"`{text}` is no reference", hint, excerpt=text)
        path.append(segment[1] or segment[2])
        position = segment.end()
    if not path and root[0] != "item":
        hint = f"write `${{{inner}.NAME}}`"
        raise BadReference(f"`{text}` names no {root[0]}", hint, excerpt=text)
    return Reference(root[0], tuple(path))


def unknown_fact(reference: Reference) -> BadReference | None:
    """What is wrong with a reference to a fact that no host tells; None if there is such a fact."""
    if reference.root != "facts":
        return None
    name, *rest = reference.path
    if name not in FACTS:
        hint = did_you_mean(name, FACTS)
        return BadReference(f"there is no fact `{name}`", hint, excerpt=reference.written_out)
    parts = FACTS[name]
    if rest and parts and rest[0] not in parts:
        hint = did_you_mean(rest[0], parts)
        message = f"the fact `{name}` has no `{rest[0]}`"
        return BadReference(message, hint, excerpt=reference.written_out)
    return _part_of_a_fact(reference)


def _part_of_a_fact(reference: Reference) -> BadReference | None:
    """What is wrong with the way down from a fact; None if that may lead somewhere."""
    for depth, name in enumerate(reference.path):
        above = reference.path[:depth]
        try:
            kinds.fact((*above, name))
        except KeyError:
            error = _missing(reference, depth, kinds.fact(above))
            return BadReference(str(error), error.hint, excerpt=reference.written_out)
    return None


def is_whole(text: str) -> bool:
    """Whether a text is one reference and nothing else; also if it is a bad one."""
    return _WHOLE.fullmatch(text) is not None


def scan(data: Any, path: DataPath = ()) -> Iterator[tuple[DataPath, Reference | BadReference]]:
    """Every reference in some data with its place, the unreadable ones too."""
    if isinstance(data, str):
        if "${" in data:
            yield from _scan_text(data, path)
    elif isinstance(data, Mapping):
        for key, value in data.items():
            if "${" in key:
                hint = "only values may hold references"
                yield (*path, key), BadReference(f"a reference in `{key}`", hint, at_key=True)
            yield from scan(value, (*path, key))
    elif isinstance(data, list | tuple):
        for number, value in enumerate(data):
            yield from scan(value, (*path, number))


def _scan_text(text: str, path: DataPath) -> Iterator[tuple[DataPath, Reference | BadReference]]:
    try:
        parts = parse(text)
    except BadReference as error:
        yield path, error
        return
    for part in parts:
        if isinstance(part, Reference):
            yield path, part


def holds_references(data: Any) -> bool:
    """Whether there is anything to resolve or to unescape in some data."""
    if isinstance(data, str):
        return "${" in data
    if isinstance(data, Mapping):
        return any(holds_references(value) for value in data.values())
    return isinstance(data, list | tuple) and any(holds_references(value) for value in data)


def resolved(data: Any, resolve: Resolve) -> Any:
    """The data with every reference replaced by what it names."""
    if isinstance(data, str):
        return _resolved_text(data, resolve) if "${" in data else data
    if isinstance(data, Mapping):
        return {key: resolved(value, resolve) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [resolved(value, resolve) for value in data]
    return data


def _resolved_text(text: str, resolve: Resolve) -> Any:
    parts = parse(text)
    if len(parts) == 1 and isinstance(parts[0], Reference):
        return resolve(parts[0])
    texts: list[str] = []
    room = MAX_TEXT
    for part in parts:
        texts.append(part if isinstance(part, str) else written(resolve(part)))
        room -= len(texts[-1])
        if room < 0:
            raise BadReference(f"a text of more than {MAX_TEXT} characters", "make it smaller")
    return "".join(texts)


def with_item(data: Any, item: Any) -> Any:
    """The data with `${item}` replaced and every other reference left for later."""
    return resolved_in_part(data, ("item",), lambda reference: look_up(reference, item))


def resolved_in_part(data: Any, roots: Collection[str], resolve: Resolve) -> Any:
    """The data with the references of these roots replaced and every other left for later."""
    if isinstance(data, str):
        return _text_in_part(data, roots, resolve) if "${" in data else data
    if isinstance(data, Mapping):
        return {key: resolved_in_part(value, roots, resolve) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [resolved_in_part(value, roots, resolve) for value in data]
    return data


def _text_in_part(text: str, roots: Collection[str], resolve: Resolve) -> Any:
    if not any(f"${{{root}" in text for root in roots):
        return text  # as it is written, so that it is told of so
    parts = parse(text)
    if len(parts) == 1 and isinstance(parts[0], Reference) and parts[0].root in roots:
        return escaped(resolve(parts[0]))
    return "".join(_kept(part, roots, resolve) for part in parts)


def _kept(part: str | Reference, roots: Collection[str], resolve: Resolve) -> str:
    if isinstance(part, str):
        return str(escaped(part))
    if part.root in roots:
        return str(escaped(written(resolve(part))))
    return f"${{{part}}}"


def escaped(data: Any) -> Any:
    """Data that resolves to itself."""
    if isinstance(data, str):
        return data.replace("${", "$${")
    if isinstance(data, Mapping):
        return {key: escaped(value) for key, value in data.items()}
    return [escaped(value) for value in data] if isinstance(data, list | tuple) else data


def written(value: Any) -> str:
    """A value inside a longer text: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def told(value: Any) -> str:
    """A value in a message: in full or not at all, since a piece of a secret is not hidden."""
    if isinstance(value, Mapping | list | tuple):
        return "a mapping" if isinstance(value, Mapping) else "a list"
    text = written(value)
    return text if len(text) <= LONGEST_TOLD else f"a text of {len(text)} characters"


def look_up(reference: Reference, root: Any) -> Any:
    """What a reference names in the data of its root; `BadReference` if nothing."""
    here = root
    for depth, name in enumerate(reference.path):
        try:
            here = part(here, name)
        except KeyError:
            raise _missing(reference, depth, here) from None
    return here


def in_scope(reference: Reference, scope: Mapping[str, Any]) -> Any:
    """What a reference names among the roots that are known here."""
    if reference.root not in scope:
        raise BadReference(f"`${{{reference}}}` is not known here")
    return look_up(reference, scope[reference.root])


def part(data: Any, name: str | int) -> Any:
    """The part of a mapping or list that has this name or number; `KeyError` if none."""
    if isinstance(data, Unmade):
        return data
    if isinstance(data, Mapping) and str(name) in data:
        return data[str(name)]
    if isinstance(data, list | tuple) and str(name).isdecimal() and int(name) < len(data):
        return data[int(name)]
    raise KeyError(name)


def _missing(reference: Reference, depth: int, data: Any) -> BadReference:
    name = reference.path[depth]
    above = ".".join((reference.root, *reference.path[:depth]))
    if isinstance(data, Mapping):
        hint, of_host = _instead(reference, depth, data), above == LABELS
        return BadReference(f"`{above}` has no `{name}`", hint, of_host=of_host)
    if not isinstance(data, list | tuple):
        hint = f"name `{above}` as a whole"
        return BadReference(f"`{above}` is {kinds.of(data)}, which has no parts", hint)
    if not name.isdecimal():
        return BadReference(f"`{above}` is a list and has no `{name}`", f"write `{above}[0]`")
    hint = f"the last is `{above}[{len(data) - 1}]`" if data else "put something into the list"
    return BadReference(f"`{above}` has no entry {name}, but {len(data)} in all", hint)


def _instead(reference: Reference, depth: int, data: Mapping[str, Any]) -> str:
    """What to write where a mapping lacks something."""
    name, near = reference.path[depth], did_you_mean(reference.path[depth], map(str, data))
    if str(reference).startswith(f"{LABELS}."):
        add = f"write `labels: {{{name}: …}}` at the host under `spec.hosts`"
        return "; ".join(filter(None, (add, near)))
    if reference.root == "item":
        return near or f"add `{name}` to the entry of `forEach`"
    if reference.root != "vars":
        return near
    where = f"declare `{name}` under `spec.vars`" if not depth else f"add `{name}` there"
    given = f"{where}, or give `--set {'.'.join(reference.path[: depth + 1])}=…`"
    return "; ".join(filter(None, (given, near)))
