"""The repository keeps the promises its documents make."""

import ast
import importlib
import pkgutil
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest
from hatchling.build import prepare_metadata_for_build_wheel

import kubexm
from kubexm.config import reference as cluster_reference
from kubexm.errors import KubexmError
from kubexm.spec import reference

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "kubexm"
# Made by tools, or not ours to write in our own words.
NOT_OURS = {"build", "dist", "__pycache__", "requirements", "LICENSE"}

MARKDOWN_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
MAKE_COMMAND = re.compile(r"(?:`|^\$? ?)make ([a-z][a-z-]*)", re.MULTILINE)
# Paths of one person's machine; what a host has (/etc, /usr, /var) is no such path.
MACHINE_PATH = re.compile(r"(?<![\w.~$}])/(?:root|home|Users)/[\w.-]+")


def our_files() -> Iterator[Path]:
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        hidden = any(part.startswith(".") for part in parts) and parts[0] != ".ci"
        if path.is_file() and not hidden and not NOT_OURS.intersection(parts):
            yield path


def documents() -> list[Path]:
    return [path for path in our_files() if path.suffix == ".md"]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def all_errors(root: type[KubexmError] = KubexmError) -> Iterator[type[KubexmError]]:
    yield root
    for child in root.__subclasses__():
        yield from all_errors(child)


@pytest.fixture(scope="module")
def error_classes() -> list[type[KubexmError]]:
    """Every error class, wherever it is defined."""
    for module in pkgutil.walk_packages(kubexm.__path__, "kubexm."):
        # Alembic's scripts run when imported, and define no error.
        if "migrations" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    return list(all_errors())


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    drawers = {"utils", "util", "helpers", "helper", "manager", "misc"}

    assert [name(path) for path in our_files() if drawers & {path.stem, path.parent.name}] == []


def test_half_of_all_functions_have_at_most_ten_lines() -> None:
    lengths = [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]

    assert statistics.median(lengths) <= 10


def test_every_error_code_is_documented(error_classes: list[type[KubexmError]]) -> None:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text()

    assert [error.code for error in error_classes if f"`{error.code}`" not in page] == []


def test_every_error_has_a_code_of_its_own(error_classes: list[type[KubexmError]]) -> None:
    codes = [error.code for error in error_classes]

    assert sorted(codes) == sorted(set(codes))


def test_generated_reference_pages_are_up_to_date(tmp_path: Path) -> None:
    for written in (reference, cluster_reference):
        written.main(tmp_path)

    pages = ROOT / "docs" / "reference"
    stale = [
        page.name for page in tmp_path.iterdir() if page.read_text() != text_of(pages / page.name)
    ]
    assert stale == [], "run `make docs-reference`"


@pytest.mark.parametrize("document", documents(), ids=name)
def test_relative_links_resolve(document: Path) -> None:
    text = FENCED.sub("", document.read_text())
    targets = [target.partition("#")[0] for target in MARKDOWN_LINK.findall(text)]
    relative = [target for target in targets if target and "://" not in target]

    assert [target for target in relative if not (document.parent / target).exists()] == []


def test_the_architecture_names_only_paths_that_exist() -> None:
    named = [code for code in architecture() if re.fullmatch(r"[\w.-]+/[\w./-]*", code)]

    assert "tests/step" in named
    assert [
        path for path in named if not any((root / path).exists() for root in (SOURCE, ROOT))
    ] == []


def test_the_map_of_the_architecture_has_every_package_and_no_other() -> None:
    packages = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    modules = {path.stem for path in SOURCE.glob("*.py")}

    named = set(architecture("## The map", "### Inside the engine", column=1))

    assert named == (packages | modules) - {"__init__", "__main__", "__pycache__"}


@pytest.mark.parametrize(
    ("package", "start", "end", "one"),
    [
        ("engine", "### Inside the engine", "### Inside the SSH", "scheduler"),
        ("connector/ssh", "### Inside the SSH", "## Words", "frames"),
    ],
)
def test_the_architecture_names_only_modules_that_exist(
    package: str, start: str, end: str, one: str
) -> None:
    modules = {path.stem for path in (SOURCE / package).glob("*.py")}
    named = {name for name in architecture(start, end, column=2) if "/" not in name}

    assert one in named
    assert named - modules == set()


def architecture(start: str = "# ", end: str = "\0", *, column: int | None = None) -> list[str]:
    """What is written as code between two lines of the page, in one column of a table or all."""
    page = FENCED.sub("", (ROOT / "ARCHITECTURE.md").read_text())
    part = page[page.index(start) :].partition(end)[0]
    rows = [line.split("|") for line in part.splitlines() if line.startswith("|")]
    text = part if column is None else "\n".join(row[column] for row in rows)
    return re.findall(r"`([^`\n]+)`", text)


def test_documents_name_only_make_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        (name(document), target)
        for document in documents()
        for target in MAKE_COMMAND.findall(document.read_text())
    }

    assert {(where, target) for where, target in named if target not in targets} == set()


def test_files_hold_no_path_of_somebodys_machine() -> None:
    found = [
        f"{name(path)}:{number}: {match[0]}"
        for path in our_files()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if (match := MACHINE_PATH.search(line))
    ]

    assert found == []


def test_changelog_has_the_current_version() -> None:
    """A version in the making is newer than all that were released, and is not among them."""
    headings = re.findall(r"^## \[(.+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released, _, making = kubexm.__version__.partition(".dev")

    assert (released in headings) is not bool(making)
    assert not making or headings[0] == "Unreleased"


def test_contributors_are_told_of_every_target() -> None:
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    told = (ROOT / "CONTRIBUTING.md").read_text()

    assert "test-lab" in targets
    assert [name for name in targets if f"make {name}" not in told and name != "help"] == []


@pytest.mark.parametrize("lock", ["dev.txt", "runtime.txt"])
def test_lock_pins_hashes_and_no_index(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text()
    pins = [line for line in text.splitlines() if line and line[0] not in " #"]

    assert [pin for pin in pins if "==" not in pin] == []
    assert len(re.findall(r"\\\n    --hash", text)) >= len(pins)
    assert "://" not in text
    assert "index" not in text


def test_the_package_describes_itself_with_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)

    made = tmp_path / prepare_metadata_for_build_wheel(str(tmp_path)) / "METADATA"

    headers, _, described = made.read_text().partition("\n\n")
    assert "Description-Content-Type: text/markdown" in headers
    assert described == (ROOT / "README.md").read_text()
