"""What documents show of commands that go by files alone, held against what these say today.

`python -m tests.shown` tells what has to be shown instead, `--write` writes it into the documents.
A line `…` stands for any lines, and `…` in a line for any text. Files are those that the page shows
as a whole, those that commands of it write, and `examples`. What has changed in one of them stands
before the block, `<!-- with: old => new -->`, and so does what goes by more than files:
`<!-- not checked: why -->`.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import msgspec

from kubexm.cli.main import guarded

ROOT = Path(__file__).parents[1]
FENCE = re.compile(
    r"(?P<notes>(?:^<!-- [^\n]*-->\n)*)^```(?P<language>\w+)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
TITLE = re.compile(r"^(?:  |metadata: \{)name: ([\w-]+)", re.MULTILINE)
GAP = "…"
LOOKS = re.compile(
    r"(plan|graph|version|config (validate|explain|show)|catalog (list|show)"
    r"|templates (list|show|check|diff))\b"
)
"""How commands begin that touch nothing."""
PLAYS = re.compile(r"(create|delete) cluster -f .* --simulate\b")
"""And those that work on simulated hosts alone, one after the other."""
_WRITES = re.compile(r"config init |templates show .* --source > ")
_PROMPT = "$ kubexm "
_NAME = re.compile(r"^# ([\w.-]+\.(?:yaml|toml))$")
_WITH = re.compile(r"^<!-- with: (.+) => (.*) -->$", re.MULTILINE)
_NOT_CHECKED = "<!-- not checked: "
_OTHERWISE = re.compile(
    r"(?P<moment>\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?)|(?P<task>\d{8}-\d{6}-[0-9a-f]{4})"
    r"|(?P<time>\b(\d+ min )?\d+(\.\d+)? s\b)"
)
"""What is another each time."""
_NUMBERS = re.compile(r"[0-9,]+| +")
_COUNTS = re.compile(r" +[\d,]+ (changed|satisfied|unchanged)\b| +nothing to do: ")
_MADE, _END = "cluster `", "hint: `kubexm task show "
_UNKNOWN = ("KUBEXM_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "REGISTRY_PASSWORD")


class Shown(msgspec.Struct, frozen=True):
    """A command in a document, and the lines below it."""

    page: Path
    line: int
    """Where the first line of the answer is."""
    command: str
    answer: tuple[str, ...]
    files: Mapping[str, str]
    """What the page has written until there, by name."""

    @property
    def title(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line} {self.command}"


class Told(msgspec.Struct, frozen=True):
    """What is shown beside what comes."""

    shown: Shown
    comes: tuple[str, ...]
    is_play: bool = False

    @property
    def is_right(self) -> bool:
        return holds(self._answer, self.comes)

    @property
    def right(self) -> list[str]:
        """What is to be shown."""
        added = len(self._answer) - len(self.shown.answer)
        return corrected(self._answer, self.comes)[added:]

    @property
    def _answer(self) -> tuple[str, ...]:
        # Where there is no terminal each change is told before.
        begins_so = not self.is_play or self.shown.answer[0] == GAP
        return self.shown.answer if begins_so else (GAP, *self.shown.answer)

    def __str__(self) -> str:
        said = difflib.unified_diff(
            self.shown.answer, self.right, "shown", "right", lineterm="", n=1
        )
        return "\n".join((self.shown.title, *said))


def looked(page: Path) -> Iterator[Told]:
    """What a page shows of commands that touch nothing."""
    for one in _found(page, LOOKS):
        yield Told(one, _said(one.command, tuple(one.files.items())))


def played(page: Path) -> Iterator[Told]:
    """What a page shows of work on simulated hosts, which goes by what was done before."""
    with _elsewhere() as place:
        for one in _found(page, PLAYS):
            said = _answered(one.command, one.files, place)
            is_report = any(line.startswith(_MADE) for line in one.answer)
            yield Told(one, _settled(one.answer, said) if is_report else said, is_play=True)


def _found(page: Path, beginning: re.Pattern[str]) -> Iterator[Shown]:
    """The commands of a page that begin so, and whose answers are shown."""
    text, files = page.read_text(), dict[str, str]()
    for block in FENCE.finditer(text):
        body, line = block["body"], text.count("\n", 0, block.start("body")) + 1
        if block["language"] != "console":
            files |= dict.fromkeys(_names(body), body)
        elif _NOT_CHECKED not in block["notes"]:
            for at, command, answer in _commands(body):
                if _WRITES.match(command):
                    files |= _written(command)
                elif answer and beginning.match(command):
                    yield Shown(page, line + at, command, answer, _changed(files, block["notes"]))


def _changed(files: Mapping[str, str], notes: str) -> dict[str, str]:
    """The files with what the notes before a block say of them."""
    changed = dict(files)
    for old, new in ([part.replace(r"\n", "\n") for part in two] for two in _WITH.findall(notes)):
        (name,) = (name for name, text in changed.items() if text.count(old) == 1)
        changed[name] = changed[name].replace(old, new)
    return changed


def _commands(body: str) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Each command of kubexm with its answer, and the number of the line that this begins with."""
    lines = body.splitlines()
    begins = [at for at, line in enumerate(lines) if line.startswith("$ ")]
    for at, end in pairwise((*begins, len(lines))):
        if lines[at].startswith(_PROMPT):
            yield at + 1, lines[at].removeprefix(_PROMPT), tuple(lines[at + 1 : end])


def _names(body: str) -> Iterator[str]:
    """What a file is called that is shown as a whole: by its first line, or as it calls itself."""
    if named := _NAME.match(body.partition("\n")[0]):
        yield named[1]
    elif body.startswith("apiVersion: kubexm") and (title := TITLE.search(body)):
        yield f"{title[1]}.yaml"


@cache
def _written(command: str) -> dict[str, str]:
    """The file that a command writes."""
    command, _, target = command.partition(" > ")
    with _elsewhere() as place:
        said = _guarded(command)
        return {target: said} if target else {"cluster.yaml": (place / "cluster.yaml").read_text()}


@cache
def _said(command: str, files: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    with _elsewhere() as place:
        return _answered(command, dict(files), place)


def _answered(command: str, files: Mapping[str, str], place: Path) -> tuple[str, ...]:
    """What a command says that finds these files, and those of the examples."""
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    for name, example in _examples(command).items():
        if name not in files and not (place / name).exists():
            (place / name).symlink_to(example)
    return tuple(_guarded(command).splitlines())


def _examples(command: str) -> dict[str, Path]:
    """The examples, by their place and by how a command names them."""
    named = (ROOT / "examples").rglob("*.yaml")
    return {"examples": ROOT / "examples"} | {
        path.name: path for path in named if path.name in command.split()
    }


@contextlib.contextmanager
def _elsewhere() -> Iterator[Path]:
    """In a directory of its own, as somebody of whom nothing is known."""
    before, environment = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        for name in _UNKNOWN:
            os.environ.pop(name, None)
        os.environ["HOME"] = place
        try:
            yield Path(place)
        finally:
            os.chdir(before)
            os.environ.clear()
            os.environ |= environment


def _guarded(command: str) -> str:
    with io.StringIO() as said:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            guarded(shlex.split(command))
        return said.getvalue()


def _settled(answer: Sequence[str], said: Sequence[str]) -> tuple[str, ...]:
    """A whole report with what comes that is the same each time, which critical paths are not."""
    counts = iter([line for line in said if _COUNTS.match(line)])
    lines = [next(counts, line) if _COUNTS.match(line) else line for line in answer]
    begin, end = _made(lines)
    lines[begin:end] = said[slice(*_made(said))]
    return tuple(lines)


def _made(lines: Sequence[str]) -> tuple[int, int]:
    """Where it is told what there is at the end."""
    (begin,) = (at for at, line in enumerate(lines) if line.startswith(_MADE))
    (end,) = (at for at, line in enumerate(lines) if line.startswith(_END))
    return begin, end


def holds(shown: Sequence[str], comes: Sequence[str]) -> bool:
    """Whether this is what comes, but for gaps, moments and the numbers of tasks."""
    parts = (r"(?:[^\n]*\n)*?" if line.strip() == GAP else _pattern(line) for line in shown)
    said = "".join(f"{_always(line.rstrip())}\n" for line in comes)
    return re.fullmatch("".join(parts), said) is not None


def _pattern(line: str) -> str:
    pieces = (re.escape(piece) for piece in _always(line.rstrip()).split(GAP))
    return r"[^\n]*".join(pieces) + r"\n"


def _always(line: str) -> str:
    return _OTHERWISE.sub(lambda found: f"<{found.lastgroup}>", line)


def corrected(shown: Sequence[str], comes: Sequence[str]) -> list[str]:
    """What is to be shown, with the gaps where they were."""
    before, after = [_alike(_found_in(comes, line)) for line in shown], [*map(_alike, comes)]
    right: list[str] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for what, begin, end, first, last in matcher.get_opcodes():
        gaps = [line for line in shown[begin:end] if line.strip() == GAP]
        if what == "equal":
            pairs = zip(shown[begin:end], comes[first:last], strict=True)
            right += (old if holds([old], [new]) else new for old, new in pairs)
        else:
            right += gaps[:1] or comes[first:last]
    return right


def _found_in(comes: Sequence[str], line: str) -> str:
    """What a line with a gap in it stands for, if that still comes."""
    if GAP not in line or line.strip() == GAP:
        return line
    return next((one for one in comes if holds([_alike(line)], [_alike(one)])), line)


def _alike(line: str) -> str:
    """A line without what may have changed in it."""
    return _NUMBERS.sub(lambda found: " " if found[0].isspace() else "0", _always(line))


def correct(page: Path, wrong: Sequence[Told]) -> None:
    """Write what is right into a page."""
    lines = page.read_text().splitlines()
    for told in sorted(wrong, key=lambda told: -told.shown.line):
        at = told.shown.line - 1
        lines[at : at + len(told.shown.answer)] = told.right
    page.write_text("\n".join((*lines, "")))


def pages() -> list[Path]:
    """The documents in which commands are shown."""
    return [*sorted(ROOT.glob("README*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def main() -> None:
    """Tell what is wrong, or mend it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write what is right")
    is_to_write = parser.parse_args().write
    for page in pages():
        wrong = [told for told in (*looked(page), *played(page)) if not told.is_right]
        for told in wrong:
            print(told, end="\n\n")
        if is_to_write and wrong:
            correct(page, wrong)


if __name__ == "__main__":
    main()
