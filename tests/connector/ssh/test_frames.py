"""Requests to a shell and their answers, with the shells of this machine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubexm.connector.ssh import frames
from kubexm.connector.ssh.frames import Splitter

MARK = "0123456789abcdef"
SEAL = frames.sealed(MARK.encode())
SHELLS = [name for name in ("dash", "bash", "busybox") if shutil.which(name)]
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
NAMES = st.from_regex(r"[A-Z][A-Z0-9_]{0,5}", fullmatch=True).map(lambda name: f"X_{name}")


def cut(stream: bytes, sizes: list[int]) -> list[tuple[bytes, bytes]]:
    """The answers in a stream that comes in pieces of these sizes: output and how it ended."""
    answers: list[tuple[bytes, bytes]] = []
    output = bytearray()

    def end(code: bytes) -> None:
        answers.append((bytes(output), code))
        output.clear()

    splitter = Splitter(MARK.encode(), output.extend, end)
    for size in sizes:
        splitter.feed(stream[:size])
        stream = stream[size:]
    splitter.feed(stream)
    return answers


@given(
    st.lists(st.binary(max_size=40) | st.just(MARK[:-1].encode()), min_size=1, max_size=4),
    st.lists(st.integers(1, 20), max_size=30),
)
def test_answers_are_cut_exactly_however_they_come(outputs: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(output + MARK.encode() + b"7\n" for output in outputs)

    assert cut(stream, sizes) == [(output, b"7") for output in outputs]


def answered(shell: str, *requests: str) -> list[tuple[bytes, bytes]]:
    program = [shell, "sh"] if shell == "busybox" else [shell]
    text = frames.joined((frames.started(MARK), *requests))
    done = subprocess.run(program, input=text, capture_output=True, check=False, timeout=20)
    return cut(done.stdout, [])[1:]


@pytest.mark.parametrize("shell", SHELLS)
@given(words=st.lists(WORDS, min_size=1, max_size=4), name=NAMES, value=WORDS)
def test_arguments_and_environment_arrive_as_they_are(
    shell: str, words: list[str], name: str, value: str
) -> None:
    shown = ("sh", "-c", f'printf "%s\\0" "$@" "${name}"', "sh", *words)

    (answer,) = answered(shell, frames.request(shown, {name: value}))

    assert answer == ("\0".join((*words, value, "")).encode(), b"0")


@pytest.mark.parametrize("shell", SHELLS)
@given(data=st.binary(min_size=1, max_size=300))
def test_input_arrives_as_it_is_and_stays_apart_from_requests(shell: str, data: bytes) -> None:
    both = frames.plain(frames.body("exec cat", data)), frames.request(("cat",))

    assert answered(shell, *both) == [(data, b"0"), (b"", b"0")]


@pytest.mark.parametrize("shell", SHELLS)
def test_programs_run_and_not_builtins_of_the_shell(shell: str) -> None:
    requests = [
        frames.request(argv, {}, "/")
        for argv in (("exit", "3"), ("sh", "-c", "exit 3"), ("pwd",), ("kill", "-l", "9"))
    ]

    codes = [code for _, code in answered(shell, *requests)]

    assert codes == [b"127", b"3", b"0", b"0"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("env", [{}, {"LC_ALL": "C"}, {"X_OTHER": "1"}])
def test_what_the_shell_takes_for_its_own_is_a_program_all_the_same(
    shell: str, env: dict[str, str]
) -> None:
    names = ("exit", "k", "q", "return", "set", "X_SET=1", "if", "no-such-program")

    answers = answered(
        shell,
        *(frames.request((name, "7"), env) for name in names),
        frames.request(("kill", "-l", "9"), env),
        frames.request(("env",), env),
        'printf %s "$X_SET$LC_ALL$X_OTHER"; k $?\n',
    )

    assert [code for _, code in answers] == [b"127"] * len(names) + [b"0"] * 3
    assert all(f"{name}={value}".encode() in answers[-2][0] for name, value in env.items())
    assert answers[-1][0] == b""


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("way", [frames.plain, frames.quiet])
def test_a_program_is_looked_for_anew_each_time(
    shell: str, way: Callable[[str], str], tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for place in (first, second):
        place.mkdir()
        (place / "new").write_text(f"#!/bin/sh\necho {place.name}\n")
        (place / "new").chmod(0o755)
    (first / "new").rename(tmp_path / "later")
    tell = way(frames.work_of(("new",), {}, None))

    answers = answered(
        shell,
        f"PATH={first}:{second}:$PATH; k 0\n",
        tell,
        frames.request(("mv", str(tmp_path / "later"), str(first / "new"))),
        tell,
        frames.request(("mv", str(first / "new"), str(tmp_path / "later"))),
        tell,
    )

    assert [said for said, _ in answers] == [b"", b"second\n", b"", b"first\n", b"", b"second\n"]


def of_shell(shell: str) -> set[str]:
    """The words that a shell keeps for itself."""
    program = [shell, "sh", "-c"] if shell == "busybox" else [shell, "-c"]
    listing = {"bash": "compgen -bk", "busybox": "help"}.get(shell)
    if listing is None:
        # It lists none: of all that others keep, what it says to be no program.
        asked = " ".join(sorted(of_shell("bash") | frames._OF_SHELLS - {"[", "[[", "{", "}", "!"}))
        listing = f"for name in {asked.replace('[', '').replace('!', '')}; do type $name; done"
    done = subprocess.run([*program, listing], capture_output=True, text=True, check=False)
    if shell == "dash":
        return {line.split()[0] for line in done.stdout.splitlines() if "shell" in line}
    return set(
        done.stdout.partition("---\n")[2].split() if shell == "busybox" else done.stdout.split()
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_every_word_of_the_shell_is_known(shell: str) -> None:
    words = of_shell(shell)

    assert len(words) > 20
    assert [word for word in sorted(words) if frames._is_program(word)] == []


@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_read_comes_as_it_is(shell: str, tmp_path: Path) -> None:
    data = b"\0\xff some text \n\n"
    (tmp_path / "file").write_bytes(data)
    reading = frames.work_of(("cat", str(tmp_path / "file")), {}, None)

    assert answered(shell, frames.quiet(reading)) == [(data, b"0-")]


@pytest.mark.parametrize("shell", SHELLS)
def test_what_runs_in_a_directory_that_is_not_there_does_not_run(
    shell: str, tmp_path: Path
) -> None:
    made = tmp_path / "made"

    nowhere = str(tmp_path / "none")

    codes = [
        code
        for _, code in answered(
            shell,
            frames.request(("touch", str(made)), {}, nowhere),
            frames.plain(frames.body(frames.inside('touch "$1"', (str(made),), {}, nowhere))),
        )
    ]

    assert len(codes) == 2
    assert b"0" not in codes
    assert not made.exists()


def touched(path: Path) -> str:
    return frames.body(frames.alone(("touch", str(path)), {}, None))


@pytest.mark.parametrize("shell", SHELLS)
@given(words=st.lists(WORDS, max_size=4), name=NAMES, value=WORDS)
def test_a_script_finds_its_words_and_leaves_the_shell_as_it_was(
    shell: str, words: list[str], name: str, value: str
) -> None:
    shown = f'printf "%s\\0" "$@" "${name}"'
    text = f'set -e; trap "echo over" EXIT; {shown}; K=none; cd /; false; echo "too far"'

    answers = answered(
        shell,
        frames.plain(frames.body(frames.inside(text, words, {name: value}))),
        f'printf %s "${name}$1"; k $?\n',
    )

    told = "\0".join((*words, value, "")).encode()
    assert answers == [(told + b"over\n", b"1"), (b"", b"0")]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_look_that_succeeds_says_so_in_one_piece(shell: str, tmp_path: Path) -> None:
    look = frames.alone(("printf", "%s\\n", "two", "lines"), {}, None)

    answers = answered(shell, frames.seen(look), frames.request(("echo", "next")))

    assert answers == [(b"two\nlines\n", b"0-"), (b"next\n", b"0")]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("way", ["seen", "quiet"])
def test_a_look_that_fails_is_told_as_ever(shell: str, way: str) -> None:
    argv = ("sh", "-c", "echo said; echo complained >&2; exit 3")
    seen, quiet = (
        frames.seen(frames.alone(argv, {}, None)),
        frames.quiet(frames.work_of(argv, {}, None)),
    )
    program = [shell, "sh"] if shell == "busybox" else [shell]
    text = frames.joined((frames.started(MARK), seen if way == "seen" else quiet))

    done = subprocess.run(program, input=text, capture_output=True, check=False, timeout=20)

    said = b"said\n" if way == "seen" else b"said\nsaid\n"
    assert cut(done.stdout, [])[1:] == [(said, b"3")]
    assert cut(done.stderr, [])[1:] == [(b"complained\n", b"")]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", ["file", "none", "link", "dangling", "directory", "a 'b", "no/x"])
def test_a_shell_knows_by_itself_what_is_not_there(shell: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nothing")
    path, ran = str(tmp_path / name), tmp_path / "ran"
    argv = ("sh", "-c", 'touch "$0"; exec stat -c %F -- "$1"', str(ran), path)

    (said, code), seen, quiet = answered(
        shell,
        frames.request(("stat", "-c", "%F", "--", path)),
        frames.seen(frames.if_there(path, frames.alone(argv, {}, None))),
        frames.quiet(frames.if_there(path, frames.work_of(argv, {}, None))),
    )

    assert seen == quiet == (said, code + b"-" if code == b"0" else code)
    # Of a directory that is not there, only a process can say why.
    assert ran.exists() is (name not in ("none", "a 'b"))


class Talk:
    """A shell that is told one thing after the other."""

    def __init__(self, shell: str) -> None:
        program = [shell, "sh"] if shell == "busybox" else [shell]
        pipe = subprocess.PIPE
        self._shell = subprocess.Popen(program, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        self.tell(frames.joined((frames.started(MARK),)))
        self.answer()

    def tell(self, data: bytes) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(data)
        self._shell.stdin.flush()

    def answer(self) -> tuple[bytes, bytes]:
        """What comes up to the next mark, and what stands behind that."""
        assert self._shell.stdout is not None
        output = b""
        while MARK.encode() not in output:
            line = self._shell.stdout.readline()
            assert line, "the shell is still there"
            output += line
        said, _, code = output.partition(MARK.encode())
        return said, code.removesuffix(b"\n")

    def rest(self) -> bytes:
        """What else it says before it ends."""
        return self._shell.communicate(timeout=20)[0]


@pytest.mark.parametrize("shell", SHELLS)
@given(data=st.binary(max_size=300), asks=st.booleans())
def test_a_shell_stays_that_was_handed_data_to_the_last_byte(
    shell: str, data: bytes, asks: bool
) -> None:
    talk = Talk(shell)

    asked = "c" if asks else ":"
    talk.tell(frames.handed(f"head -c {len(data)} && {asked}", asks=False).encode())
    begun = talk.answer()
    talk.tell(data + SEAL + frames.request(("echo", "next")).encode())

    assert [begun, talk.answer(), talk.answer()] == [(b"", b"0"), (data, b"0"), (b"next\n", b"0")]
    assert talk.rest() == b""


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("read", [0, 1, 20])
def test_data_that_a_command_leaves_is_never_taken_for_requests(shell: str, read: int) -> None:
    talk = Talk(shell)

    talk.tell(frames.handed(f"head -c {read} >/dev/null; exit 3", asks=False).encode())
    begun = talk.answer()
    talk.tell(b"\necho taken\n" * 100 + SEAL + b"echo taken\n")

    assert (begun, talk.answer()) == ((b"", b"0"), (b"", b"3"))
    assert talk.rest() == b""


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("sent", [b"", b"som", b"some" + SEAL[:-18], b"some\n" + SEAL])
def test_what_was_not_handed_over_to_the_end_is_not_complete(shell: str, sent: bytes) -> None:
    talk = Talk(shell)

    talk.tell(frames.handed("head -c 4 >/dev/null; c", asks=False).encode())
    begun = talk.answer()
    talk.tell(sent)

    assert begun == (b"", b"0")
    assert talk.rest() == f"{MARK}1\n".encode()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_change_is_made_only_while_the_host_obeys(shell: str, tmp_path: Path) -> None:
    (tmp_path / "holder").write_text("5\ttask\tsince\twho\n")
    made = tmp_path / "made"
    work = touched(made)

    mine = answered(
        shell,
        frames.GROUP,
        frames.enrolled(str(tmp_path), "5\ttask\tsince\twho", "groups.h.5", "task"),
        frames.change(work),
        frames.change(frames.body("exec true"), awaited="true"),
    )
    made_once = made.exists()
    made.unlink()
    other = answered(
        shell,
        frames.GROUP,
        frames.enrolled(str(tmp_path), "4\told\tsince\twho", "groups.h.4", "old"),
        frames.change(work),
        frames.change(work, awaited="touch"),
    )

    assert [code for _, code in mine] == [b"0"] * 4
    assert made_once
    assert [code for _, code in other] == [b"0", b"0", b"refused", b"refused"]
    assert not made.exists()
    manners = [
        line.split("\t")[4] for line in (tmp_path / "groups.h.5").read_text().split("\n") if line
    ]
    assert manners == ["ended", "awaited", "ended"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_that_can_not_be_recorded_changes_nothing(shell: str, tmp_path: Path) -> None:
    made = tmp_path / "made"

    answers = answered(
        shell,
        frames.GROUP,
        frames.enrolled(str(tmp_path / "none"), "5\ttask", "groups.h.5", "task"),
        frames.change(touched(made)),
    )

    assert [code for _, code in answers] == [b"0", b"1"]
    assert not made.exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_group_is_told_as_the_kernel_knows_it_whatever_it_is_called(
    shell: str, tmp_path: Path
) -> None:
    odd = tmp_path / "odd ) name"
    odd.symlink_to(shutil.which(shell) or shell)
    program = [str(odd), "sh"] if shell == "busybox" else [str(odd)]
    text = frames.joined((frames.started(MARK), frames.GROUP, "cat /proc/$$/stat; k 0\n"))

    done = subprocess.run(
        program, input=text, capture_output=True, check=False, timeout=20, process_group=0
    )
    (_, _), (group, _), (stat, _) = cut(done.stdout, [])

    number, start, boot = frames.read_group(group.decode().removesuffix("\n"))
    fields = stat.decode().rpartition(")")[2].split()
    assert (number, start) == (fields[2], fields[19])
    first = Path("/proc/1/stat").read_text().rpartition(")")[2].split()
    assert boot == f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {first[19]}"


@given(st.lists(st.text(max_size=12), max_size=12), st.integers(1, 20))
def test_portions_keep_the_order_and_the_size(requests: list[str], most: int) -> None:
    found = list(frames.portions(requests, most))

    assert [one for some in found for one in some] == requests
    assert all(len(some) == 1 or len("".join(some).encode()) <= most for some in found)
