"""Nodes become steps: one for all units where nothing differs, else one for each."""

import pytest
from msgspec.structs import replace
from tests.spec.texts import HOSTS, nodes, with_steps

from kubexm.errors import InvalidInput, StepFailed
from kubexm.plan import ExecutionNode, StepSpec
from kubexm.runtime.contexts import UnitView
from kubexm.spec.description import describe
from kubexm.spec.loader import Loader
from kubexm.step.checks import Assert, Noop
from kubexm.step.commands import Command
from kubexm.step.files import FilePresent
from kubexm.step.waits import WaitFor

VIEW = UnitView(
    host={"name": "a", "roles": ["web"]},
    vars={"port": 80, "text": "x ${vars.port}"},
    facts={"os": {"id": "debian"}},
    values={"ticket": "abc", "list": ["-v"]},
)


def node(step: StepSpec, when: str | None = None, *, references: bool = True) -> ExecutionNode:
    return ExecutionNode("p/s", "s", replace(step, references=references), ("a",), when=when)


def test_a_step_without_references_is_made_once() -> None:
    load = Loader()
    same = node(StepSpec("file", {"path": "/a", "content": "$${HOME}"}))

    loaded = load(same)

    assert loaded.static == FilePresent("/a", content="${HOME}")
    assert loaded.bind(VIEW) is loaded.static is load(same).static
    assert loaded.cls is FilePresent
    assert loaded.wanted(VIEW)


def test_a_step_made_in_code_means_its_text_as_it_is_written() -> None:
    step = Command(("sh", "-c", "echo ${HOME} $${x}"))

    loaded = Loader()(node(step.spec(), references=False))

    assert loaded.static == step


def test_another_node_under_the_same_id_is_another_step() -> None:
    load = Loader()

    first = load(node(StepSpec("noop", {"text": "one"})))
    second = load(node(StepSpec("noop", {"text": "two"})))

    assert (first.static, second.static) == (Noop("one"), Noop("two"))


def test_references_are_resolved_for_each_unit_with_their_types() -> None:
    load = Loader()
    wait = load(node(StepSpec("wait", {"port": "${vars.port}"})))
    argv = ["echo", "${values.ticket}", "${host.name}-${facts.os.id}", "${vars.text}"]
    command = load(node(StepSpec("command", {"argv": argv, "undo": "${values.list}"})))

    assert wait.static is None
    assert wait.cls is WaitFor
    assert wait.bind(VIEW) == WaitFor(port=80)
    assert command.bind(VIEW) == Command(
        ("echo", "abc", "a-debian", "x ${vars.port}"), undo=("-v",)
    )


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"path": "/${facts.os.version}"}, "`facts.os` has no `version`"),
        ({"path": "/${values.other}"}, "`values` has no `other`"),
        ({"path": "/${item}"}, "is not known here"),
        ({"path": "/${HOME}"}, "is no reference"),
    ],
)
def test_what_cant_be_resolved_is_a_failure_of_the_unit(params: dict[str, str], said: str) -> None:
    with pytest.raises(StepFailed, match=said.replace("$", r"\$")):
        Loader()(node(StepSpec("file", params))).bind(VIEW)


def test_a_value_of_the_wrong_type_is_an_error_that_says_so() -> None:
    with pytest.raises(StepFailed, match=r"^`argv`: found the number 80, want a list of text$"):
        Loader()(node(StepSpec("command", {"argv": "${vars.port}"}))).bind(VIEW)
    with pytest.raises(StepFailed, match=r"^`path` is `80`, want an absolute path") as caught:
        Loader()(node(StepSpec("file", {"path": "${vars.port}"}))).bind(VIEW)

    assert "begin it with `/`" in caught.value.hint


def test_a_number_is_written_out_where_text_is_wanted() -> None:
    params = {"argv": ["a", "${facts.cpus}", "${vars.port}"], "env": {"ON": "${vars.on}"}}
    view = UnitView(vars={"port": 1.5, "on": True}, facts={"cpus": 3})

    bound = Loader()(node(StepSpec("command", params))).bind(view)

    assert isinstance(bound, Command)
    assert bound.argv == ("a", "3", "1.5")
    assert bound.env == {"ON": "true"}


def test_an_unknown_kind_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidInput) as caught:
        Loader()(node(StepSpec("fiel")))

    assert caught.value.hint == "did you mean `file`?"


@pytest.mark.parametrize(
    ("when", "wanted"), [("facts.os.id == 'debian'", True), ("values.ticket == 'z'", False)]
)
def test_a_condition_is_decided_for_each_unit(when: str, wanted: bool) -> None:
    assert Loader()(node(StepSpec("noop"), when)).wanted(VIEW) is wanted


@pytest.mark.parametrize("when", ["facts.gpu", "vars.port", "vars.port < 'x'"])
def test_a_condition_that_cant_be_decided_is_a_failure_of_the_unit(when: str) -> None:
    loaded = Loader()(node(StepSpec("noop"), when))

    with pytest.raises(StepFailed, match="can't decide `when: "):
        loaded.wanted(VIEW)


def test_every_step_of_a_file_loads() -> None:
    load = Loader()
    found = nodes(
        with_steps("""
        - {name: a, command: {argv: [a], onlyIf: [b], secretEnv: {T: "env://T"}}}
        - {name: b, service: {unit: x, restartsOn: [/a]}}
        - {name: c, template: {path: /a, text: "{{ x }}", data: {x: 1}}}
        """)
    )

    assert all(load(each).static is not None for each in found.values())


def test_steps_are_described_in_the_words_of_their_class() -> None:
    steps = with_steps(
        """
        - {name: a, file: {path: "${vars.p}/x"}}
        - {name: b, command: {argv: "${vars.argv}"}}
        - {name: c, service: {unit: nginx}}
        """,
        f"{HOSTS}\nvars: {{p: /p, argv: [ls]}}",
    )

    assert [describe(each.step) for each in nodes(steps).values()] == [
        "file ${vars.p}/x",
        'command argv="${vars.argv}"',
        "nginx running, enabled",
    ]
    assert describe(StepSpec("gone", {"a": 1})) == "gone a=1"


def asserting(that: str, when: str = "") -> ExecutionNode:
    condition = f"({when}) and not ({that})" if when else f"not ({that})"
    return node(StepSpec("assert", {"that": False, "message": "fine"}), condition)


def test_an_assertion_is_decided_apart_from_its_condition() -> None:
    load = Loader()
    loaded = load(asserting("facts.cpus >= 2", "facts.arch == 'x'"))
    views = [UnitView(facts={"cpus": cpus, "arch": arch}) for cpus in (1, 2) for arch in "xy"]

    assert [loaded.wanted(view) for view in views] == [True, False, True, False]
    assert loaded.static is None
    assert loaded.bind(views[2]) == Assert(that=True, message="fine")
    want = "fine: want `facts.cpus >= 2`, but `facts.cpus` is 1"
    assert loaded.bind(views[0]) == Assert(that=False, message=want)


def test_an_assertion_tells_what_it_found() -> None:
    view = UnitView(
        facts={"os": {"id": ""}},
        vars={"some": [1, 2], "none": None},
        host={"name": "a", "labels": {}},
    )

    def found(that: str) -> str:
        step = Loader()(asserting(that)).bind(view)
        assert isinstance(step, Assert)
        return step.message.partition(", but ")[2]

    assert found("host.name == 'b'") == "`host.name` is `a`"
    assert found("len(vars.some) > 2 or len(vars.some) > 3") == "`vars.some` is a list of 2"
    assert found("defined(host.labels.x)") == "`host.labels.x` is not there"
    assert found("facts.os.id != ''") == "`facts.os.id` is empty"
    assert found("false") == ""


def test_an_assertion_that_can_not_be_decided_says_so() -> None:
    loaded = Loader()(asserting("facts.cpus > 'x'"))

    with pytest.raises(StepFailed, match=r"^can't decide `that: facts\.cpus > 'x'`: .* compares"):
        loaded.bind(UnitView(facts={"cpus": 1}))


def test_an_assertion_on_a_value_asks_for_it_first() -> None:
    step = StepSpec("assert", {"that": False, "message": "m"}, needs=("ticket",))

    assert Loader()(node(step, "not (values.ticket == 'x')")).decisive == {"ticket"}
