"""Documents stay true: their pipelines run, their commands exist, their excerpts are excerpts."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.shown import FENCE, TITLE, corrected, holds, looked, pages, played

from kubexm.app import clusters
from kubexm.app.params import ClusterParams
from kubexm.cli.commands import app
from kubexm.cli.main import guarded
from kubexm.common.paths import Home
from kubexm.config.rules.listeners import Listeners
from kubexm.resource import catalog
from kubexm.resource.needs import Needs, Proxy
from kubexm.resource.parts import system_parts

ROOT = Path(__file__).parents[1]
TUTORIAL = ROOT / "docs" / "tutorial"
GUIDES = [
    *ROOT.glob("README*.md"),
    *TUTORIAL.glob("*.md"),
    *(ROOT / "docs" / "howto").glob("*.md"),
    *(ROOT / "docs" / "explanation").glob("*.md"),
]
# Both readmes show the same.
PLAYED = [page for page in GUIDES if page.name != "README.zh-CN.md" and page.parent != TUTORIAL]
# What is set before the command, the options before every command, pipes and redirections.
AROUND = re.compile(r"^.*?kubexm |--log-\w+ \w+ | (?:[0-9]?>|\||&).*$")
SECONDS = re.compile(r"\b[0-9]+\.[0-9] s\b")
DELAY = re.compile(r"\b(median|low|high): [0-9.]+")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, language: str) -> Iterator[re.Match[str]]:
    return (found for found in FENCE.finditer(path.read_text()) if found["language"] == language)


def whole_pipelines() -> Iterator[object]:
    """Each pipeline that a guide shows from its first line to its last."""
    for path in GUIDES:
        for found in blocks(path, "yaml"):
            if found["body"].startswith("apiVersion:"):
                title = re.search(r"^  name: (.+)$", found["body"], re.MULTILINE)
                assert title is not None
                yield pytest.param(found["body"], found["notes"], id=f"{path.stem}-{title[1]}")


def commands(path: Path) -> list[list[str]]:
    """Every command line of kubexm in a document, without what stands around the command."""
    lines = [
        line.removeprefix("$ ")
        for found in blocks(path, "console")
        for line in found["body"].splitlines()
        if re.match(r"\$ ([A-Z_]+=\S+ )?kubexm ", line)
    ]
    return [shlex.split(AROUND.sub("", line)) for line in lines]


@pytest.fixture(autouse=True)
def fresh_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEXM_HOME", str(tmp_path / "home"))


def arguments(tmp_path: Path, text: str, *, simulated: bool) -> list[str]:
    """How to run a pipeline of a document: without its delays, or away from the real /tmp."""
    path = tmp_path / "pipeline.yaml"
    if simulated:
        path.write_text(DELAY.sub(r"\1: 0", text))
        return ["-f", str(path), "--simulate"]
    path.write_text(text.replace("/tmp/", f"{tmp_path}/"))
    return ["-f", str(path)]


def stage(file: str) -> str:
    return (TUTORIAL / "files" / file).read_text()


def last_task(capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert guarded(["task", "list"]) == 0
    return capsys.readouterr().out.splitlines()[1].split()[0]


@pytest.mark.parametrize("file", ["1-file.yaml", "2-values.yaml"])
def test_the_diary_is_written_once(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    diary = arguments(tmp_path, stage(file), simulated=False)

    assert guarded(["run", *diary]) == 0
    assert "Dear diary," in next(tmp_path.glob("**/*.txt")).read_text()
    capsys.readouterr()
    assert guarded(["run", *diary]) == 0
    assert "changed" not in capsys.readouterr().err


def test_the_shop_fails_and_opens_with_the_corrected_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def shop(file: str) -> list[str]:
        return arguments(tmp_path, stage(file), simulated=True)

    assert guarded(["run", *shop("3-roles.yaml")]) == 0
    assert guarded(["run", *shop("4-broken.yaml")]) == 1
    task = last_task(capsys)

    assert guarded(["task", "retry", task, *shop("5-corrected.yaml")[:2]]) == 0
    changed = [line.split()[1:3] for line in capsys.readouterr().err.splitlines()[1:]]
    assert ["web3", "shop/web/release/cache"] in changed
    assert ["web1", "shop/web/release/cache"] not in changed


def test_the_tutorial_shows_what_is_in_its_files() -> None:
    files = [path.read_text() for path in (TUTORIAL / "files").iterdir()]
    shown = [found["body"] for found in blocks(TUTORIAL / "first-pipeline.md", "yaml")]

    assert [text for text in shown if not any(text in whole for whole in files)] == []


def test_the_guide_to_python_shows_what_its_example_is_and_prints() -> None:
    guide, example = ROOT / "docs/howto/write-a-pipeline-in-python.md", "examples/in_python.py"
    whole = (ROOT / example).read_text()
    command, *shown = next(blocks(guide, "console"))["body"].splitlines()

    done = subprocess.run(
        [sys.executable, ROOT / example], capture_output=True, text=True, check=True
    )

    assert [found["body"] for found in blocks(guide, "python") if found["body"] not in whole] == []
    assert command == f"$ python {example}"
    said = [SECONDS.sub("0.0 s", line) for line in done.stdout.splitlines()]
    assert said[: len(shown) - 1] == shown[:-1]  # the last one stands for the rest


@pytest.mark.parametrize(("text", "notes"), list(whole_pipelines()))
def test_a_pipeline_in_a_guide_ends_as_the_guide_says(
    text: str, notes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "correct-horse")
    exits = re.search(r"exits (\d)", notes)
    pipeline = arguments(tmp_path, text, simulated="on this machine" not in notes)

    assert guarded(["run", *pipeline]) == int(exits[1] if exits else 0)


def test_no_two_files_call_two_things_the_same() -> None:
    """Simulated worlds, and what is recorded of runs, go by the name."""
    examples = [path.read_text() for path in (ROOT / "examples").rglob("*.yaml")]
    pages = [page for page in GUIDES if page.parent != TUTORIAL]
    shown = [found["body"] for page in pages for found in blocks(page, "yaml")]
    named: dict[str, set[str]] = {}
    for text in (*examples, *shown, stage("5-corrected.yaml")):
        if "apiVersion: kubexm" in text:
            title = TITLE.search(text)
            assert title is not None
            named.setdefault(title[1], set()).add(text)

    assert [name for name, texts in named.items() if len(texts) > 1] == []


@pytest.mark.parametrize("document", GUIDES, ids=name)
def test_a_document_shows_commands_that_exist(document: Path) -> None:
    for command in commands(document):
        app.parse_args(command, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("document", GUIDES, ids=name)
def test_a_document_removes_nothing_that_real_clusters_stand_on(
    document: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("KUBEXM_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    usual = Home.from_environment()
    kept = {usual.state, usual.data, usual.artifacts, usual.clusters, usual.worlds}

    lines = (line for found in blocks(document, "console") for line in found["body"].splitlines())
    removed = {word for line in lines if line.startswith("$ rm ") for word in line.split()}

    assert {Path(word).expanduser() for word in removed} & kept == set()


@pytest.mark.parametrize("guide", ["create-a-cluster", "describe-a-cluster"])
def test_the_first_file_of_a_guide_is_written_and_sound(
    guide: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = commands(ROOT / "docs" / "howto" / f"{guide}.md")[0]

    assert first[:2] == ["config", "init"]
    assert guarded(first) == 0
    assert guarded(["config", "validate", "-f", "cluster.yaml"]) == 0


@pytest.mark.parametrize("proxy", ["iptables", "ipvs", "nftables"])
def test_the_guide_to_sites_without_a_network_names_every_package_that_hosts_need(
    proxy: Proxy,
) -> None:
    guide = (ROOT / "docs/howto/air-gapped-install.md").read_text()
    needs = Needs(
        kubernetes="v1.36.4",
        endpoint="keepalived-haproxy",
        proxy=proxy,
        storage=("local-path", "nfs"),
        keeps_time=True,
    )

    parts = [part.package for part in system_parts(needs)]
    names = [name for part in parts for name in catalog.load().packages(part, "apt")]

    assert [name for name in names if f"`{name}`" not in guide] == []


def test_the_guide_to_checks_names_every_port_that_a_cluster_listens_at() -> None:
    guide = (ROOT / "docs/howto/check-hosts-before-a-cluster.md").read_text()
    files = (ROOT / "examples" / "clusters").glob("*.yaml")
    declared = (clusters.read(ClusterParams(file)).declared for file in files)

    used = {
        str(listener.port): listener.who
        for one in declared
        for member in one.members
        for listener in Listeners(one).of(member)
        if not listener.place  # whoever says the port need not look it up
    }

    assert {port: who for port, who in used.items() if not re.search(rf"\b{port}\b", guide)} == {}


@pytest.mark.parametrize("page", pages(), ids=name)
def test_a_document_shows_what_commands_say_today(page: Path) -> None:
    """`python -m tests.shown --write` mends it."""
    wrong = [str(told) for told in looked(page) if not told.is_right]

    assert not wrong, "\n\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("page", PLAYED, ids=name)
def test_a_document_shows_what_comes_of_a_simulated_cluster(page: Path) -> None:
    wrong = [str(told) for told in played(page) if not told.is_right]

    assert not wrong, "\n\n".join(wrong)


def test_a_gap_stands_for_any_lines_and_any_text() -> None:
    said = ["one 1 s", "two", "three", "20261118-120000-abcd"]

    assert holds(["one 2 s", "…", "20261119-130000-ffff"], said)
    assert holds(["…", "t…", "three", "…"], said)
    assert not holds(["one 1 s", "two", "three"], said)
    assert not holds(["…", "two", "20261118-120000-abcd"], said)


def test_what_is_right_has_its_gaps_where_they_were() -> None:
    said = ["web   12 nodes", "data  3 nodes", "new  1 node", "15 nodes · done at last"]

    right = corrected(["web   9 nodes", "…", "11 nodes · done …"], said)

    assert right == ["web   12 nodes", "…", "15 nodes · done at last"]


def test_both_readmes_show_the_same_commands_and_outputs() -> None:
    english, chinese = (
        [found["body"] for found in blocks(ROOT / file, "console")]
        for file in ("README.md", "README.zh-CN.md")
    )

    assert english == chinese
