"""What is told of a failure: the cause first, then what was said, each once and within bounds."""

from __future__ import annotations

from kubexm.runner.diagnosis import Section, complaints, report

SWAP = "running with swap on is not supported, please disable swap"


def stamped(level: str, text: str, second: int = 0) -> str:
    return f"{level}1118 08:04:{second:02}.123456    4242 server.go:215] {text}"


def test_the_cause_comes_before_what_shows_it() -> None:
    said = report([Section("journal of etcd", []), Section("journal of kubelet", [SWAP])])

    cause, remedy, *rest = said.splitlines()
    assert cause == "cause: swap is on"
    assert "spec.kubernetes.kubelet.config.failSwapOn: false" in remedy
    assert rest == ["journal of kubelet:", f"  {SWAP}"]


def test_what_nobody_knows_is_told_as_it_is() -> None:
    assert report([Section("pods", ["pod web: Pending"])]) == "pods:\n  pod web: Pending"


def test_nothing_is_told_where_nothing_was_said() -> None:
    assert report([Section("pods", [])]) == ""


def test_a_line_of_any_length_keeps_its_beginning_and_its_end() -> None:
    (_, line) = report([Section("pods", ["first " + "x" * 5000 + " last"])]).splitlines()

    assert len(line) < 1000
    assert line.startswith("  first x")
    assert line.endswith("x last")


def test_of_what_a_program_said_its_complaints_are_told() -> None:
    lines = [stamped("I", "all is well"), stamped("E", '"bad" err="\\"a\\" is \\\\"b\\\\""')]

    assert complaints(lines) == ['server.go:215] "bad" err=""a" is "b""']


def test_complaints_of_programs_with_other_lines_are_known_too() -> None:
    bad = [
        'time="2026-11-18T08:04:05Z" level=error msg="RunPodSandbox"',
        '{"level":"fatal","caller":"etcdmain/etcd.go:204","msg":"discovery"}',
        "panic: runtime error",
        "kubelet.service: Failed with result 'exit-code'.",
    ]

    assert complaints([*bad, 'time="2026-11-18T08:04:05Z" level=info msg="loading"', ""]) == bad


def test_a_complaint_that_differs_by_numbers_only_is_told_once_as_it_was_last() -> None:
    lines = [
        stamped("E", 'pod a1b2c3d4e5f6 "x"', 1),
        stamped("E", "other", 2),
        stamped("E", 'pod 0f0f0f0f0f0f "x"', 3),
    ]

    assert complaints(lines) == ["server.go:215] other", 'server.go:215] pod 0f0f0f0f0f0f "x"']


def test_only_the_last_complaints_are_told_and_the_first_that_has_a_known_cause() -> None:
    names = [chr(ord("a") + number) * 3 for number in range(26)]
    lines = [stamped("E", SWAP), *(stamped("E", name) for name in names)]

    said = complaints(lines)

    assert said == [f"server.go:215] {text}" for text in (SWAP, *names[-8:])]


def test_where_nothing_is_bad_the_last_lines_are_told() -> None:
    assert complaints(["a", "b", "c", "d"]) == ["b", "c", "d"]
    assert complaints(["a", "b"]) == ["a", "b"]
    assert complaints(["a", "b"], or_last=False) == []


def test_what_says_of_itself_that_all_is_well_is_no_sign_of_anything() -> None:
    skipped = 'level=info msg="skip loading plugin" error="exec: \\"mkfs.erofs\\": executable file'
    skipped += ' not found in $PATH: skip plugin"'

    assert complaints([skipped, stamped("I", SWAP), "plain"]) == ["plain"]


def test_of_what_follows_from_something_else_only_the_last_is_told() -> None:
    refused = [
        stamped("E", f"{what}: dial tcp 10.0.0.1:6443: connect: connection refused")
        for what in "abc"
    ]

    assert complaints([*refused, stamped("E", "own")]) == [
        "server.go:215] c: dial tcp 10.0.0.1:6443: connect: connection refused",
        "server.go:215] own",
    ]


def test_an_error_that_programs_hand_on_is_told_once_for_all_that_it_is_about() -> None:
    pulls = [
        stamped("E", f'{who}: Failed to pull image "{image}": no')
        for image in ("a:1", "b:1")
        for who in ("runtime", "worker")
    ]

    assert complaints(pulls) == [
        'server.go:215] worker: Failed to pull image "a:1": no',
        'server.go:215] worker: Failed to pull image "b:1": no',
    ]


def test_what_containerd_always_says_at_first_is_no_complaint() -> None:
    first = 'level=warning msg="failed to load cni during init" error="cni plugin not initialized"'

    assert complaints([first]) == []
