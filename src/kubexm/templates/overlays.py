"""Templates of the operator in place of ours: a directory with files of the same names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path

import msgspec

from kubexm.common.nearest import did_you_mean
from kubexm.document import beside
from kubexm.errors import InvalidInput, Problem
from kubexm.templates import formats, render
from kubexm.templates.context import Context, Template
from kubexm.templates.registry import TEMPLATES
from kubexm.templates.render import SUFFIX

_RIGHT = "correct the files named above; `kubexm templates show NAME` tells what a template may use"


class Overlays(msgspec.Struct, frozen=True):
    """Templates that take the place of ours, each sound by itself."""

    directory: Path | None = None
    """Where they lie."""
    texts: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Their texts by name."""

    def text(self, name: str) -> str | None:
        """The text in place of ours; None if ours stays."""
        return self.texts.get(name)


def read(directory: Path) -> Overlays:
    """All templates of a directory; `InvalidInput` with all that is wrong with them."""
    found, problems = _found(directory)
    for name, text in found.items():
        problems.extend(_problems(TEMPLATES[name], text, directory / f"{name}{SUFFIX}"))
    _require_none(problems, directory)
    return Overlays(directory, found)


def texts(directory: Path) -> Mapping[str, str]:
    """The texts of the templates of a directory by name, sound or not."""
    found, problems = _found(directory)
    _require_none(problems, directory)
    return found


def _found(directory: Path) -> tuple[dict[str, str], list[Problem]]:
    found: dict[str, str] = {}
    problems: list[Problem] = []
    for file in _listed(directory):
        try:
            name = _name(file, directory)
            with beside.opened(file) as stream, TextIOWrapper(stream, "utf-8") as lines:
                found[name] = lines.read()
        except (InvalidInput, OSError, UnicodeDecodeError) as error:
            problems.append(_unreadable(error, file))
    return found, problems


def _require_none(problems: Sequence[Problem], directory: Path) -> None:
    if problems:
        raise InvalidInput(
            f"templates in `{directory}` can't be used", problems=problems, hint=_RIGHT
        )


def _listed(directory: Path) -> list[Path]:
    hint = "name one that holds FOLDER/NAME.j2 files"
    try:
        if directory.is_dir():
            return [*_files(directory)]
    except OSError as error:
        raise InvalidInput(f"can't read `{directory}`: {error.strerror}", hint=hint) from error
    raise InvalidInput(f"`{directory}` is no directory", hint=hint)


def _files(directory: Path) -> Iterator[Path]:
    """What may be meant as a template: no hidden file and no page about them."""
    for path in sorted(directory.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(directory).parts)
        if not path.is_dir() and not hidden and path.suffix != ".md":
            yield path


def _name(file: Path, directory: Path) -> str:
    path = file.relative_to(directory)
    name = str(path.with_suffix(""))
    if path.suffix != SUFFIX:
        raise InvalidInput(
            f"found `{path}`, want a name that ends in `{SUFFIX}`",
            hint=did_you_mean(str(path), [known + SUFFIX for known in TEMPLATES]),
        )
    if name not in TEMPLATES:
        raise InvalidInput(f"unknown template `{name}`", hint=did_you_mean(name, TEMPLATES))
    return name


def _unreadable(error: InvalidInput | OSError | UnicodeDecodeError, file: Path) -> Problem:
    match error:
        case InvalidInput():
            return Problem(error.message, str(file), error.hint)
        case OSError():
            return Problem(f"can't be read: {error.strerror}", str(file))
        case _:
            return Problem("not UTF-8 text", str(file), "save the file in the UTF-8 encoding")


def _problems(template: Template, text: str, file: Path) -> list[Problem]:
    """What is wrong with one of them, the first kind of mistake only: the rest follows from it."""
    if (fault := render.fault(text)) is not None:
        return [Problem(fault.message, f"{file}:{fault.line}", fault.hint)]
    if unknown := [*_unknown(template, text, file)]:
        return unknown
    found = (_unlike(template, text, file, sample) for sample in template.samples)
    return [*dict.fromkeys(problem for problem in found if problem is not None)]


def _unknown(template: Template, text: str, file: Path) -> Iterator[Problem]:
    known = template.context.__struct_fields__
    for name, line in render.used(text).items():
        if name not in known:
            yield Problem(
                f"`{name}` is not among what this template may use",
                f"{file}:{line}",
                did_you_mean(name, known),
            )


def _unlike(template: Template, text: str, file: Path, sample: Context) -> Problem | None:
    """Why what comes out of a sample is no file of its format."""
    try:
        filled = render.merged(text, sample.data(), {}, template.format, what=str(file))
    except InvalidInput as error:
        return Problem(error.message, error.where.replace(", line ", ":"), error.hint)
    try:
        formats.check(filled, template.format)
    except InvalidInput as error:
        place = f" in {error.where}" if error.where else ""
        message = f"what comes out of it is not {template.format}{place}: {error.message}"
        return Problem(message, str(file), f"`kubexm templates show {template.name}` has ours")
    return None
