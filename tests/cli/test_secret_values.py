"""A value that is a secret arrives where it belongs, and is seen nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.answers import Kubexm

Write = Callable[..., Path]
NEW, OLD = "correct-horse-battery", "older-staple-battery"
HERE = "  runOnRoles: [control-node]\n"
LEAVE = "- {name: pw, value: {key: pw, argv: [cat, DIR/pw], secret: true}}\n"
USE = (
    LEAVE
    + """
- name: command
  command:
    argv: [sh, -c, 'printf "%s/%s" "$PW" "$(cat)" >DIR/told; echo "was told $PW"']
    env: {PW: "${values.pw}"}
    stdin: ${values.pw}
- {name: file, file: {path: DIR/file, content: "pw=${values.pw}"}}
- {name: template, template: {path: DIR/template, text: "pw={{ pw }}", data: {pw: "${values.pw}"}}}
- {name: block, block: {path: DIR/block, content: "pw=${values.pw}"}}
- {name: line, line: {path: DIR/line, line: "pw=${values.pw}", match: "^pw="}}
- {name: new, line: {path: DIR/new, line: "pw=${values.pw}"}}
"""
)
WRITTEN = ("file", "template", "block", "line", "new")


def modes(directory: Path) -> dict[str, int]:
    return {name: (directory / name).stat().st_mode & 0o777 for name in WRITTEN}


def records(home: Path) -> bytes:
    """All that the store has written down."""
    return b"".join(path.read_bytes() for path in home.rglob("kubexm.db*"))


def prepare(directory: Path) -> None:
    (directory / "pw").write_text(NEW)
    (directory / "block").write_text(f"# BEGIN kubexm: managed\npw={OLD}\n# END kubexm: managed\n")
    (directory / "line").write_text(f"a=b\npw={OLD}\n")
    for name in ("block", "line"):
        (directory / name).chmod(0o640)


def test_it_arrives_on_this_machine_and_stands_in_no_record_or_output(
    kubexm: Kubexm, pipeline: Write, home: Path, tmp_path: Path
) -> None:
    prepare(tmp_path)
    file = pipeline(USE.replace("DIR", str(tmp_path)), more=HERE)

    seen = [
        kubexm("run", "-f", file, "--check"),
        kubexm("run", "-f", file),
        kubexm("run", "-f", file, "--check", "-o", "json"),
    ]
    task = kubexm("task", "list", "-o", "json").out.split('"id": "')[1].split('"')[0]
    seen += [
        kubexm("task", "show", task, "-o", "json"),
        kubexm("task", "logs", task),
        kubexm("plan", "-f", file, "-o", "json"),
    ]

    assert [answer.code for answer in seen] == [0] * len(seen)
    assert "was told ***" in seen[4].out
    assert (tmp_path / "told").read_text() == f"{NEW}/{NEW}"
    assert all(f"pw={NEW}" in (tmp_path / name).read_text() for name in WRITTEN)
    said = "".join(answer.out + answer.err for answer in seen).encode() + records(home)
    assert NEW.encode() not in said
    assert OLD.encode() not in said


def test_files_made_for_it_are_private_and_others_keep_their_mode(
    kubexm: Kubexm, pipeline: Write, tmp_path: Path
) -> None:
    prepare(tmp_path)

    answer = kubexm("run", "-f", pipeline(USE.replace("DIR", str(tmp_path)), more=HERE))

    assert answer.code == 0
    assert modes(tmp_path) == {
        "file": 0o600,
        "template": 0o600,
        "block": 0o640,
        "line": 0o640,
        "new": 0o600,
    }


def test_what_gave_way_to_it_comes_back_when_the_run_goes_back(
    kubexm: Kubexm, pipeline: Write, home: Path, tmp_path: Path
) -> None:
    prepare(tmp_path)
    before = {name: (tmp_path / name).read_text() for name in ("block", "line")}
    steps = USE + "- {name: oops, assert: {argv: ['false'], message: is ready}}\n"
    file = pipeline(steps.replace("DIR", str(tmp_path)), more=HERE + "  onFailure: rollback\n")

    answer = kubexm("run", "-f", file)

    assert answer.code == 1
    assert {name: (tmp_path / name).read_text() for name in before} == before
    assert not any((tmp_path / name).exists() for name in ("file", "template", "new"))
    assert OLD.encode() not in records(home)


@pytest.mark.parametrize(
    "step",
    [
        "noop: {}, when: values.pw > 3",
        "noop: {}, when: values.pw",
        "noop: {}, when: values.pw.part == 1",
        "noop: {}, when: not values.all",
        'command: {argv: ["true"], env: "${values.pw}"}',
        'command: {argv: ["true"], stdin: "${values.pw.part}"}',
        'template: {path: /tmp/x, text: x, data: "${values.pw}"}',
    ],
)
def test_no_part_of_a_long_one_is_told_where_it_does_not_fit(
    kubexm: Kubexm, pipeline: Write, tmp_path: Path, step: str
) -> None:
    (tmp_path / "pw").write_text(f"{NEW}-" * 5)
    lines = LEAVE.replace("pw, value: {key: pw", "all, value: {key: all, parse: lines")
    steps = f"{LEAVE}{lines}- {{name: s, {step}}}"
    file = pipeline(steps.replace("DIR", str(tmp_path)), more=HERE)

    answer = kubexm("run", "-f", file, "-o", "json")

    assert answer.code == 1
    assert NEW not in answer.out + answer.err


def test_it_arrives_on_simulated_hosts(kubexm: Kubexm, pipeline: Write) -> None:
    scripts = f"  simulate:\n    scripts: [{{argv: [pwgen], stdout: '{NEW}'}}]\n"
    steps = """
    - {name: pw, mint: {key: pw, argv: [pwgen], secret: true, scope: host}}
    - {name: cat, command: {argv: [cat], stdin: "it is ${values.pw}", env: {PW: "${values.pw}"}}}
    - {name: file, file: {path: /etc/pw, content: "${values.pw}"}}
    - {name: arrived, assert: {argv: [grep, -q, "^correct-horse", /etc/pw]}}
    """
    file = pipeline(steps, more=scripts)

    answer = kubexm("run", "-f", file, "--simulate", "-o", "json")

    assert answer.code == 0
    assert "it is ***" in answer.out
    assert NEW not in answer.out + answer.err


@pytest.mark.parametrize("command", ["plan", "graph", "run"])
def test_on_a_command_line_it_is_refused_before_anything_runs(
    kubexm: Kubexm, pipeline: Write, tmp_path: Path, command: str
) -> None:
    (tmp_path / "pw").write_text(NEW)
    touch = f"- {{name: touch, command: {{argv: [touch, {tmp_path}/touched]}}}}\n"
    steps = touch + LEAVE + '- {name: s, command: {argv: [login, "${values.pw}"]}}'
    file = pipeline(steps.replace("DIR", str(tmp_path)), more=HERE)

    answer = kubexm(command, "-f", file)

    assert answer.code == 2
    assert f"{file}:16:49: " in answer.err
    assert "`${values.pw}` is a secret, and `argv` is no place for one" in answer.err
    assert "hint: keep it to `env` or `stdin`: that is never shown" in answer.err
    assert not (tmp_path / "touched").exists()
