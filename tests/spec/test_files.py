"""Files beside a pipeline: part of the graph by content, byte by byte."""

import hashlib
import os
from pathlib import Path

import pytest
from tests.spec.texts import HOSTS, with_steps

from kubexm.common import digests
from kubexm.common.digests import Digests
from kubexm.errors import InvalidPipeline
from kubexm.runtime.contexts import UnitView
from kubexm.spec import local as files
from kubexm.spec.files import begin_reading
from kubexm.spec.loader import Loader
from kubexm.spec.overrides import parse_overrides
from kubexm.spec.pipeline import parse_pipeline, read_pipeline
from kubexm.spec.planner import PlannedPipeline, plan
from kubexm.step.files import FilePresent

ZONES = """
vars: {system: debian, zone: z}
hosts:
  - {name: a, roles: [web], vars: {rack: 1}}
  - {name: b, roles: [web], vars: {rack: 1}}
  - {name: c, roles: [db], vars: {zone: y}}
"""


def planned(directory: Path, steps: str, spec: str = HOSTS) -> PlannedPipeline:
    path = directory / "p.yaml"
    path.write_text(with_steps(steps, spec))
    return plan(read_pipeline(path))


def problem_of(directory: Path, steps: str, spec: str = HOSTS) -> str:
    with pytest.raises(InvalidPipeline) as caught:
        planned(directory, steps, spec)
    (problem,) = caught.value.problems
    assert problem.hint
    return problem.message


def test_text_is_embedded_as_it_is_and_its_digest_kept(tmp_path: Path) -> None:
    (tmp_path / "motd").write_text("hello ${HOME} {{ x }}\n")

    graph = planned(tmp_path, "- {name: s, file: {path: /etc/motd, source: motd}}").graph

    loaded = Loader()(graph.nodes["p/m/t/s"])
    assert loaded.static == FilePresent("/etc/motd", content="hello ${HOME} {{ x }}\n")
    digest = hashlib.sha256(b"hello ${HOME} {{ x }}\n").hexdigest()
    assert graph.digests["file:motd"] == digest


def test_bytes_that_are_no_text_are_embedded_too(tmp_path: Path) -> None:
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\xff")

    graph = planned(tmp_path, "- {name: s, file: {path: /logo, source: logo.png}}").graph

    assert graph.nodes["p/m/t/s"].step.params == {"path": "/logo", "content_base64": "iVBOR/8="}


def test_a_template_is_embedded_and_tried(tmp_path: Path) -> None:
    (tmp_path / "x.j2").write_text("{{ port }}")
    step = "- {name: s, template: {path: /x, source: x.j2, data: DATA}}"

    graph = planned(tmp_path, step.replace("DATA", "{port: 80}")).graph

    assert graph.nodes["p/m/t/s"].step.params["text"] == "{{ port }}"
    assert "'port' is undefined" in problem_of(tmp_path, step.replace("DATA", "{prot: 80}"))


def test_a_source_may_depend_on_the_entry_of_a_list(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A")
    (tmp_path / "b.txt").write_text("B")
    step = "- {name: s, forEach: [a, b], file: {path: '/${item}', source: '${item}.txt'}}"

    graph = planned(tmp_path, step).graph

    assert [node.step.params["content"] for node in graph] == ["A", "B"]


@pytest.mark.parametrize("name", ["motd.${vars.system}", "${vars.file}", "motd.${vars.own}"])
def test_a_source_may_depend_on_a_variable_that_all_hosts_of_the_step_share(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "motd.debian").write_text("hello")
    step = f"- {{name: s, runOnRoles: [web], file: {{path: /x, source: '{name}'}}}}"
    spec = """
    vars: {system: debian, file: "motd.${vars.system}", own: fedora}
    hosts:
      - {name: a, roles: [web], vars: {own: debian}}
      - {name: b, roles: [web], vars: {own: debian}}
      - {name: c, roles: [db], vars: {system: fedora}}
    """

    graph = planned(tmp_path, step, spec).graph

    assert graph.nodes["p/m/t/s"].step.params["content"] == "hello"
    assert "file:motd.debian" in graph.digests


def test_a_source_goes_by_what_the_command_line_sets(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("B")
    text = with_steps("- {name: s, file: {path: /x, source: '${vars.name}.txt'}}")
    pipeline = parse_pipeline(text, directory=tmp_path)

    graph = plan(pipeline, parse_overrides(["name=b"])).graph

    assert graph.nodes["p/m/t/s"].step.params["content"] == "B"


def test_the_name_of_a_source_may_hold_what_looks_like_a_reference(tmp_path: Path) -> None:
    (tmp_path / "${x}").write_text("X")

    graph = planned(tmp_path, "- {name: s, file: {path: /x, source: '$${x}'}}").graph

    assert graph.nodes["p/m/t/s"].step.params["content"] == "X"


def test_steps_and_templates_of_the_program_are_part_of_the_graph_by_digest(
    tmp_path: Path,
) -> None:
    step = "- {name: s, template: {path: /x, template: systemd/service, data: {}}}"

    with pytest.raises(InvalidPipeline, match="undefined"):
        planned(tmp_path, step)
    graph = planned(tmp_path, "- {name: s, noop: }\n- {name: r, file: {path: /x}}").graph

    assert sorted(graph.digests) == ["step:file", "step:noop"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("nowhere", "there is no file `nowhere`"),
        (".", "there is no file `.`"),
        ("/dev/null", "there is no file `/dev/null`"),
        ("'${vars.x}'", "`vars` has no `x`"),
        ("'x-${vars.rack}'", "`vars` has no `rack` on `c`"),
        ("'x-${vars.zone}'", "`x-${vars.zone}` is not the same on all hosts"),
        ("'x-${host.name}'", "`${host.name}` is of each host, and a source is read once for all"),
        ("'x-${facts.arch}'", "`${facts.arch}` is known when the step runs, and a source is read"),
        ("'x-${values.v}'", "`${values.v}` is known when the step runs, and a source is read"),
        ("large", "`large` is larger than 4 MiB"),
        ("latin", "`latin` is not UTF-8 text"),
    ],
)
def test_a_file_that_cant_be_embedded_is_refused(tmp_path: Path, source: str, said: str) -> None:
    (tmp_path / "large").write_bytes(b"x" * (files.MAX_BYTES + 1))
    (tmp_path / "latin").write_bytes(b"\xe4")

    step = f"- {{name: s, template: {{path: /x, source: {source}}}}}"
    message = problem_of(tmp_path, step, ZONES)

    assert said in message
    assert message.startswith("spec.modules[0].tasks[0].steps[0].template.source: ")


def test_a_pipeline_that_came_from_no_disk_has_no_files_beside_it() -> None:
    text = with_steps("- {name: s, file: {path: /x, source: y}}")

    with pytest.raises(InvalidPipeline, match="beside no file"):
        plan(parse_pipeline(text))


def test_a_template_that_cant_be_read_names_its_file_line_and_what_to_close(
    tmp_path: Path,
) -> None:
    (tmp_path / "motd.j2").write_text("hello\n{% if name %}\n{{ name }}\n")
    text = with_steps("""
        - {name: v, value: {key: v, argv: [id], scope: host}}
        - {name: s, template: {path: /a, source: motd.j2, data: {name: "${values.v}"}}}
        - name: r
          template:
            path: /a
            text: |
              hello
              {{ name
    """)

    with pytest.raises(InvalidPipeline) as caught:
        plan(parse_pipeline(text, "p.yaml", directory=tmp_path))

    first, second = caught.value.problems
    assert first.where == "p.yaml:15:54"
    assert "the template `motd.j2` can't be read, line 3: unexpected end of" in first.message
    assert first.hint == "close `if` with `{% endif %}`"
    assert second.where == "p.yaml:21:19"
    assert second.hint == "close `{{` with `}}`"


LARGE = b"\x00large\n" * 20_000


def test_a_large_file_stays_where_it_is_and_the_graph_has_its_digest(tmp_path: Path) -> None:
    (tmp_path / "${image}").write_bytes(LARGE)

    graph = planned(tmp_path, "- {name: s, file: {path: /srv/image, source: '$${image}'}}").graph

    digest = hashlib.sha256(LARGE).hexdigest()
    source = str(tmp_path / "${image}")
    step = Loader()(graph.nodes["p/m/t/s"]).static
    assert step == FilePresent("/srv/image", source=source, sha256=digest)
    assert graph.digests["file:${image}"] == digest


def test_large_files_are_read_beside_planning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, begun = Digests(), dict[Path, bool]()
    monkeypatch.setattr(known, "begin", lambda path: begun.setdefault(path, path.name == "image"))
    (tmp_path / "small").write_bytes(LARGE)
    for name in ("image", "known"):
        with (tmp_path / name).open("wb") as image:
            image.truncate(digests.LARGE)
    path = tmp_path / "p.yaml"

    found = {}
    for name in ("small", "image", "known", "none", "${vars.image}", "."):
        steps = f"- {{name: s, file: {{path: /srv/image, source: '{name}'}}}}"
        path.write_text(with_steps(steps, HOSTS))
        found[name] = begin_reading(read_pipeline(path).document, known)

    assert [*begun] == [tmp_path / "image", tmp_path / "known"]
    assert [name for name, is_read in found.items() if is_read] == ["image"]


def test_a_large_file_that_cant_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(LARGE)
    step = "- {name: s, file: {path: /srv/image, source: NAME}}"

    assert "there is no file `images`" in problem_of(tmp_path, step.replace("NAME", "images"))
    assert "there is no file `.`" in problem_of(tmp_path, step.replace("NAME", "."))


def test_what_planning_fills_in_is_no_parameter(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()

    for step in (
        "file: {path: /x, content: y, sha256: z}",
        "tree: {path: /x, source: site, contents: {a: b}}",
    ):
        assert "unknown parameter" in problem_of(tmp_path, f"- {{name: s, {step}}}")


def test_a_directory_is_part_of_the_graph_by_names_modes_and_digests(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "css" / "empty").mkdir(parents=True)
    (site / "index.html").write_text("hello ${HOME}")
    (site / "index.html").chmod(0o640)
    site.chmod(0o750)

    step = "- {name: s, tree: {path: /srv/site, source: 'si${vars.rest}'}}"
    graph = planned(tmp_path, step, "vars: {rest: te}\n" + HOSTS).graph

    digest = hashlib.sha256(b"hello ${HOME}").hexdigest()
    assert graph.nodes["p/m/t/s"].step.params == {
        "path": "/srv/site",
        "source": str(site),
        "contents": {"index.html": f"0640 {digest}"},
        "directories": {".": "0750", "css": "0755", "css/empty": "0755"},
    }


def test_what_a_directory_may_not_hold_is_refused_by_its_name(tmp_path: Path) -> None:
    step = "- {name: s, tree: {path: /srv/site, source: site}}"
    (tmp_path / "site").mkdir()
    odd = tmp_path / "site" / "odd"

    odd.symlink_to("elsewhere")
    assert "`site/odd` is neither a file nor a directory" in problem_of(tmp_path, step)
    odd.unlink()
    os.mkfifo(odd)
    assert "`site/odd` is neither a file nor a directory" in problem_of(tmp_path, step)
    odd.rename(tmp_path / "site" / "two\nlines")
    assert "`site` has a file named 'two\\nlines'" in problem_of(tmp_path, step)


def test_a_directory_with_too_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site").mkdir()
    for name in "abc":
        (tmp_path / "site" / name).touch()
    monkeypatch.setattr(files, "MAX_FILES", 2)

    step = "- {name: s, tree: {path: /srv/site, source: site}}"

    assert "`site` has more than 2 files" in problem_of(tmp_path, step)


def test_a_file_comes_beside_the_pipeline_or_where_it_is_said(tmp_path: Path) -> None:
    steps = """
    - {name: s, fetch: {path: /f, to: "${host.name}.log"}}
    - {name: r, fetch: {path: /f, to: "/var/logs/${host.name}.log"}}
    """

    found = planned(tmp_path, steps)

    (host,) = [host for host in found.hosts if host.name == "a"]
    view = UnitView(host=host.described())
    made = [Loader()(node).bind(view) for node in found.graph]
    assert [step.resources for step in made] == [
        (f"here:{tmp_path}/a.log",),
        ("here:/var/logs/a.log",),
    ]


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("log", "the files of `a`, `b`, `c` would all come to `log`"),
        ("'${vars.zone}.log'", "the files of `a`, `b` would all come to `z.log`"),
        ("logs/", "`to` is `logs/`, want the path of a file"),
        ("''", "`to` is ``, want the path of a file"),
        (".", "`.` is a directory, want a file"),
    ],
)
def test_a_place_that_is_not_each_hosts_own_is_refused(tmp_path: Path, to: str, said: str) -> None:
    with pytest.raises(InvalidPipeline) as caught:
        planned(tmp_path, f"- {{name: s, fetch: {{path: /f, to: {to}}}}}", ZONES)

    assert any(said in problem.message for problem in caught.value.problems)
    assert all(problem.hint for problem in caught.value.problems)


@pytest.mark.parametrize(
    "more", ["runOnOneOf: [web]", "runOnRoles: [db]", "when: facts.arch == 'x86_64'"]
)
def test_a_place_may_be_the_same_where_one_host_comes_to_it_or_nobody_knows(
    tmp_path: Path, more: str
) -> None:
    planned(tmp_path, f"- {{name: s, {more}, fetch: {{path: /f, to: log}}}}", ZONES)
