"""A file becomes the graph that code would make: names, links, hosts, settings, hooks."""

from collections.abc import Iterable

import pytest
from tests.spec.texts import HOSTS, nodes, pipeline, planned, with_steps

from kubexm.errors import InvalidPipeline
from kubexm.plan import (
    Allowance,
    ExecutionNode,
    HostGroup,
    Pool,
    ResourceConstraints,
    RetryPolicy,
    Tolerance,
    codec,
)

TWO_MODULES = f"""
{HOSTS}
LINK
modules:
  - name: m
    tasks:
      - name: t
        steps: [{{name: s, noop: }}, {{name: r, noop: }}]
      - name: u
        steps: [{{name: s, noop: }}]
  - name: n
    tasks:
      - name: t
        steps: [{{name: s, noop: }}]
"""


def linked(found: Iterable[ExecutionNode]) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Both kinds of edges by the end of the ids."""
    return {
        short(node.id): (tuple(map(short, node.after)), tuple(map(short, node.after_same_host)))
        for node in found
    }


def short(id: str) -> str:
    return id.removeprefix("p/").removeprefix("m/").removeprefix("t/")


def test_ids_are_paths_and_the_default_links_are_same_host_then_barriers() -> None:
    found = nodes(pipeline(TWO_MODULES.replace("LINK", "")))

    assert list(found) == ["m/t/s", "m/t/r", "m/u/s", "n/t/s"]
    assert found["m/t/r"].after_same_host == ("p/m/t/s",)
    assert found["m/u/s"].after == ("p/m/t/r",)
    assert found["n/t/s"].after == ("p/m/u/s",)
    assert [node.name for node in found.values()] == ["s", "r", "s", "s"]


def test_links_are_what_the_scope_says() -> None:
    apart = nodes(pipeline(TWO_MODULES.replace("LINK", "link: parallel")))
    hosts = nodes(pipeline(TWO_MODULES.replace("LINK", "link: per-host")))

    assert apart["n/t/s"].after == apart["n/t/s"].after_same_host == ()
    assert hosts["n/t/s"].after_same_host == ("p/m/u/s",)


def test_a_task_may_link_its_steps_by_barriers_or_not_at_all() -> None:
    text = with_steps("- {name: s, noop: }\n- {name: r, noop: }")

    barred = nodes(text.replace("- name: t\n", "- name: t\n          link: barrier\n"))
    apart = nodes(text.replace("- name: t\n", "- name: t\n          link: parallel\n"))

    assert barred["m/t/r"].after == ("p/m/t/s",)
    assert apart["m/t/r"].after == apart["m/t/r"].after_same_host == ()


def test_after_adds_edges_of_the_scope_that_fits_the_level() -> None:
    text = pipeline(f"""
        {"hosts: [{name: a}, {name: b}]"}
        modules:
          - name: m
            link: parallel
            tasks:
              - name: t
                link: parallel
                steps:
                  - {{name: s, noop: }}
                  - {{name: r, after: [s], noop: }}
                  - {{name: q, after: [{{name: s, scope: all}}, r], noop: }}
              - {{name: u, steps: [{{name: s, noop: }}]}}
              - {{name: v, after: [t, {{name: u, scope: host}}], steps: [{{name: s, noop: }}]}}
        """)

    assert linked(nodes(text).values()) == {
        "s": ((), ()),
        "r": ((), ("s",)),
        "q": (("s",), ("r",)),
        "u/s": ((), ()),
        "v/s": (("q",), ("u/s",)),
    }


def test_after_a_hole_is_after_what_the_hole_is_after() -> None:
    text = with_steps(
        """
        - {name: s, noop: }
        - {name: hole, after: [s], runOnRoles: [nobody], noop: }
        - {name: r, after: [hole], noop: }
        """,
        HOSTS + "roles: [nobody]",
    ).replace("- name: t\n", "- name: t\n          link: parallel\n")

    found = nodes(text)

    assert list(found) == ["m/t/s", "m/t/r"]
    assert found["m/t/r"].after_same_host == ("p/m/t/s",)


def test_after_many_to_many_goes_through_one_join() -> None:
    text = with_steps("""
        - {name: s, forEach: [1, 2, 3], noop: }
        - {name: r, forEach: [1, 2], after: [{name: s, scope: all}], noop: }
        """).replace("- name: t\n", "- name: t\n          link: parallel\n")

    graph = planned(text).graph

    (join,) = graph.joins.values()
    assert join.after == ("p/m/t/s[1]", "p/m/t/s[2]", "p/m/t/s[3]")
    assert {graph.nodes[f"p/m/t/r[{number}]"].after for number in (1, 2)} == {(join.id,)}


def test_after_one_of_is_a_barrier_though_steps_are_linked_by_host() -> None:
    found = nodes(
        with_steps("""
        - {name: s, runOnOneOf: [web], noop: }
        - {name: r, noop: }
        - {name: q, after: [s], noop: }
        """)
    )

    assert found["m/t/s"].one_of
    assert found["m/t/s"].hosts == ("a", "b")
    assert found["m/t/r"].after == ("p/m/t/s",)
    assert found["m/t/q"].after == ("p/m/t/s",)


def test_roles_are_inherited_and_the_nearest_wins() -> None:
    found = nodes(
        pipeline(f"""
        {HOSTS.strip().replace(chr(10), chr(10) + "        ")}
        modules:
          - name: m
            runOnRoles: [web]
            tasks:
              - name: t
                steps:
                  - {{name: s, noop: }}
                  - {{name: r, runOnRoles: [db, web], noop: }}
                  - {{name: q, runOnRoles: [control-node], noop: }}
              - {{name: u, runOnRoles: [all], steps: [{{name: s, noop: }}]}}
        """)
    )

    assert {id: node.hosts for id, node in found.items()} == {
        "m/t/s": ("a", "b"),
        "m/t/r": ("a", "b", "c"),
        "m/t/q": ("control-node",),
        "m/u/s": ("a", "b", "c"),
    }


def test_the_control_node_is_a_host_of_every_graph() -> None:
    plan = planned(with_steps("- {name: s, noop: }"))

    assert plan.graph.hosts == ("control-node", "a", "b", "c")
    assert plan.hosts[0].connection == "local"
    assert plan.hosts[0].roles == ("control-node",)


def problems_of(text: str) -> list[str]:
    with pytest.raises(InvalidPipeline) as caught:
        planned(text)
    assert caught.value.hint.startswith("correct the places named above; nothing was changed")
    return [f"{problem} ({problem.hint})" for problem in caught.value.problems]


def test_a_role_that_nobody_has_is_refused_together_with_what_else_is_wrong_there() -> None:
    found = problems_of(
        with_steps("""
        - {name: s, noop: }
        - {name: r, runOnRoles: [wbe], file: {path: "${vars.nope}"}}
        - {name: q, runOnRoles: [wbe], noop: }
        """)
    )

    assert [problem.split(": ")[0] for problem in found] == [
        "p.yaml:15:38",
        "p.yaml:15:57",
        "p.yaml:16:38",
    ]
    assert "no host has the role `wbe` (if it may have no host" in found[0]
    assert "say `roles: [wbe]` under `spec`; did you mean `web`?)" in found[0]
    assert "`vars` has no `nope`" in found[1]


def test_a_declared_role_that_nobody_has_leaves_a_hole() -> None:
    steps = """
        - {name: s, noop: }
        - {name: r, runOnRoles: [registry], noop: }
        - {name: q, noop: }
        """

    plan = planned(with_steps(steps, HOSTS + "roles: [registry]"))

    assert plan.warnings == ()
    assert plan.graph.nodes["p/m/t/q"].after_same_host == ("p/m/t/s",)


def test_problems_of_the_graph_come_with_those_of_the_steps() -> None:
    found = problems_of(
        with_steps("""
        - {name: s, noop: {text: "${vars.nope}"}}
        - {name: r, noop: {text: "${values.nope}"}}
        - {name: v, value: {key: x, argv: [a]}}
        - {name: w, runOnRoles: [db], value: {key: x, argv: [a]}}
        """)
    )

    assert [problem.split(": ")[0] for problem in found] == [
        "p.yaml:14:38",
        "p.yaml:15:15",
        "p.yaml:16:15",
        "p.yaml:17:15",
    ]
    assert "spec.modules[0].tasks[0].steps[1]: needs the value `nope`" in found[1]
    assert "one of them by `runOnOneOf`" in found[2]
    assert "and so does `p/m/t/v` (p.yaml:16:15)" in found[3]


def test_an_empty_list_to_go_over_is_worth_a_notice() -> None:
    plan = planned(with_steps("- {name: s, forEach: [], noop: }\n- {name: t, noop: }"))

    (notice,) = plan.notices
    assert str(notice).startswith("p.yaml:14:34: ")
    assert "an empty list: the step is left out" in notice.message


def test_a_plan_without_any_node_says_so() -> None:
    plan = planned(with_steps("- {name: s, noop: }", spec="vars: {}"))

    assert len(plan.graph) == 0
    assert [warning.message for warning in plan.warnings] == [
        "nothing to do: no step has a host to run on"
    ]


def test_neighbours_that_share_no_host_are_worth_a_warning() -> None:
    text = """
        - {name: s, runOnRoles: [web], noop: }
        - {name: r, runOnRoles: [db], noop: }
        """

    (warning,) = planned(with_steps(text)).warnings
    told = planned(with_steps(text.replace("name: r", "name: r, after: [{name: s, scope: all}]")))

    assert "shares no host with `s`" in warning.message
    assert told.warnings == ()


def test_each_entry_of_a_list_is_a_node_with_a_lasting_name() -> None:
    found = nodes(
        with_steps(
            """
        - name: s
          forEach: ${vars.users}
          when: item.admin
          file: {path: "/x/${item.name}", content: "${item.id} ${vars.port} ${item}"}
        """,
            spec=f"{HOSTS}\nvars: {{port: 1, users: [{{name: ann, id: 7, admin: true}},"
            " {name: bob, id: 8, admin: false}]}",
        )
    )

    assert list(found) == ["m/t/s[ann]", "m/t/s[bob]"]
    assert found["m/t/s[ann]"].step.params == {
        "path": "/x/ann",
        "content": '7 ${vars.port} {"name":"ann","id":7,"admin":true}',
    }
    assert [node.when for node in found.values()] == ["True", "False"]
    assert found["m/t/s[bob]"].after_same_host == ("p/m/t/s[ann]",)


@pytest.mark.parametrize(
    ("entries", "names"),
    [
        ("[a, b]", ["s[a]", "s[b]"]),
        ("[80, 443]", ["s[80]", "s[443]"]),
        ("[a, a]", ["s[0]", "s[1]"]),
        ("[/x/y, b]", ["s[0]", "s[1]"]),
        ("[{name: a}, {nome: b}]", ["s[0]", "s[1]"]),
        ("[true]", ["s[0]"]),
        ("['${vars.word}']", ["s[w]"]),
        ("[]", []),
    ],
)
def test_entries_are_named_by_their_words_or_else_by_their_number(
    entries: str, names: list[str]
) -> None:
    found = nodes(
        with_steps(f"- {{name: s, forEach: {entries}, noop: }}", f"{HOSTS}\nvars: {{word: w}}")
    )

    assert [id.rsplit("/")[-1] for id in found] == names


def test_an_item_keeps_its_type_where_it_stands_alone() -> None:
    found = nodes(with_steps("- {name: s, forEach: [80], wait: {port: '${item}'}}"))

    assert found["m/t/s[80]"].step.params == {"port": 80}


def test_settings_come_from_the_nearest_scope_that_says_them() -> None:
    found = nodes(
        pipeline("""
        hosts: [{name: a}]
        retry: {attempts: 5, delay: 2s, exponentialBackoff: true, maxDelay: 1m, jitter: 0.5}
        timeout: 1m30s
        tolerance: {unreachable: 1, failed: 20%}
        tags: [all]
        ignoreErrors: true
        modules:
          - name: m
            tolerance: {failed: 2}
            tags: [mine]
            tasks:
              - name: t
                steps:
                  - name: s
                    noop:
                  - name: r
                    retry: {attempts: 1}
                    timeout: 250ms
                    ignoreErrors: false
                    tolerance: {refused: 50%}
                    tags: [own, all]
                    noop:
        """)
    )

    inherited, own = found["m/t/s"], found["m/t/r"]
    assert inherited.retry == RetryPolicy(5, 2.0, True, 60.0, 0.5, ("failed",))
    assert (inherited.timeout, inherited.ignore_errors) == (90.0, True)
    assert inherited.tolerance == Tolerance(Allowance(1), Allowance(), Allowance(2))
    assert inherited.tags == ("all", "mine")
    assert own.retry == RetryPolicy(1)
    assert (own.timeout, own.ignore_errors) == (0.25, False)
    assert own.tolerance == Tolerance(Allowance(1), Allowance(0, 50.0), Allowance(2))
    assert own.tags == ("all", "mine", "own")


def test_limits_pools_groups_and_policy_are_part_of_the_graph() -> None:
    graph = planned(
        with_steps(
            """
        - name: s
          limits: {maxConcurrencyPerHost: 1, globalConcurrencyLimit: 3, pools: [download]}
          noop:
        """,
            f"{HOSTS}\npools: {{download: 4, disk: {{size: 1, scope: host}}}}\n"
            "groups: {web: {roles: [web], minimum: 2}}\nonFailure: fail-fast",
        )
    ).graph

    assert graph.nodes["p/m/t/s"].limits == ResourceConstraints(1, 3, ("download",))
    assert graph.pools == {"download": Pool(4), "disk": Pool(1, "host")}
    assert graph.groups == (HostGroup("web", ("a", "b"), 2),)
    assert graph.on_failure == "fail-fast"


HOOKED = """
hosts: [{name: a}, {name: b}]
hooks: {always: [{name: bye, runOnRoles: [control-node], noop: }]}
modules:
  - name: m
    hooks: {post: [{name: after, barrier: true, noop: }]}
    tasks:
      - name: t
        hooks:
          pre: [{name: one, noop: }, {name: two, noop: }]
          onFailure: [{name: oh, noop: }]
        steps:
          - name: s
            hooks: {pre: [{name: own, noop: }]}
            noop:
"""


def test_hooks_stand_around_their_scope_at_every_level() -> None:
    found = nodes(pipeline(HOOKED))

    hooks = {id: node.hook for id, node in found.items() if node.hook is not None}
    assert {id: (hook.scope, hook.moment, hook.barrier) for id, hook in hooks.items()} == {
        "m/t/@pre-1/one": ("p/m/t", "pre", False),
        "m/t/@pre-2/two": ("p/m/t", "pre", False),
        "m/t/s/@pre-1/own": ("p/m/t/s", "pre", False),
        "m/t/@on-failure-1/oh": ("p/m/t", "on-failure", False),
        "m/@post-1/after": ("p/m", "post", True),
        "@always-1/bye": ("p", "always", True),
    }
    assert found["m/t/@pre-2/two"].after_same_host == ("p/m/t/@pre-1/one",)
    assert found["m/t/s/@pre-1/own"].after_same_host == ("p/m/t/@pre-2/two",)
    assert found["m/t/s"].after_same_host == ("p/m/t/s/@pre-1/own",)


def test_a_scope_may_say_how_all_of_it_is_undone() -> None:
    text = pipeline("""
        hosts: [{name: a}]
        compensate: [{name: whole, noop: }]
        modules:
          - name: m
            tasks:
              - name: t
                compensate: [{name: x, noop: }, {name: y, noop: }]
                steps: [{name: s, noop: }]
        """)

    compensations = planned(text).graph.compensations

    assert {item.scope: [node.id for node in item.nodes] for item in compensations} == {
        "p/m/t": ["p/m/t/@compensate/x", "p/m/t/@compensate/y"],
        "p": ["p/@compensate/whole"],
    }


def test_a_rolling_task_goes_through_its_hosts_in_batches() -> None:
    text = with_steps("- {name: s, noop: }\n- {name: r, runOnRoles: [web], noop: }").replace(
        "- name: t\n", "- name: t\n          rolling: {batch: 2}\n"
    )

    found = nodes(text)

    assert {id: node.hosts for id, node in found.items()} == {
        "m/t/batch-1/s": ("a", "b"),
        "m/t/batch-1/r": ("a", "b"),
        "m/t/batch-2/s": ("c",),
    }
    assert found["m/t/batch-2/s"].after == ("p/m/t/batch-1/r",)


def test_a_rolling_module_takes_all_its_tasks_for_each_host() -> None:
    text = TWO_MODULES.replace("LINK", "").replace(
        "name: m\n", "name: m\n    rolling: {batch: 1}\n"
    )

    found = nodes(pipeline(text))

    assert list(found)[:4] == ["m/a/t/s", "m/a/t/r", "m/a/u/s", "m/b/t/s"]
    assert found["m/b/t/s"].after == ("p/m/a/u/s",)
    assert found["n/t/s"].after == ("p/m/c/u/s",)


def test_values_that_are_named_become_needs() -> None:
    found = nodes(
        with_steps("""
        - {name: v, value: {key: k, argv: [id], scope: host}}
        - {name: w, value: {key: j, argv: [id], scope: host}}
        - {name: s, when: values.j == 'x', file: {path: /a, content: "${values.k.part}"}}
        - {name: r, noop: }
        """)
    )

    assert found["m/t/s"].step.needs == ("k", "j")
    assert found["m/t/r"].step.needs == ()


def test_a_value_of_one_host_is_not_there_on_another() -> None:
    with pytest.raises(InvalidPipeline, match="on c") as caught:
        planned(
            with_steps("""
            - {name: v, runOnRoles: [web], value: {key: k, argv: [id], scope: host}}
            - {name: s, file: {path: /a, content: "${values.k}"}}
            """)
        )

    assert caught.value.problems[0].where == "p.yaml:15:15"


VALUE_IN_ANOTHER_TASK = f"""
{HOSTS}
modules:
  - name: m
    tasks:
      - name: read
        runOnRoles: [web]
        steps:
          - {{name: v, value: {{key: k, argv: [id], scope: host}}}}
      - name: between
        steps: [{{name: s, noop: }}]
      - name: use
        runOnRoles: [web]
        steps:
          - {{name: s, file: {{path: /a, content: "${{values.k}}"}}}}
          - {{name: r, file: {{path: /b, content: "${{values.k}}"}}}}
"""


def test_a_value_of_each_host_reaches_a_later_task_host_by_host() -> None:
    found = nodes(pipeline(VALUE_IN_ANOTHER_TASK))

    assert found["m/use/s"].after == ("p/m/between/s",)
    assert found["m/use/s"].after_same_host == ("p/m/read/v",)
    assert found["m/use/r"].after_same_host == ("p/m/use/s",)


def test_a_value_of_each_host_reaches_hooks_and_batches_too() -> None:
    text = VALUE_IN_ANOTHER_TASK.replace(
        "- name: use\n",
        "- name: use\n        rolling: {batch: 1}\n        hooks:\n"
        '          onFailure: [{name: o, barrier: true, command: {argv: [tell, "${values.k}"]}}]\n',
    )

    found = nodes(pipeline(text))

    assert found["m/use/b/s"].after_same_host == ("p/m/read/v",)
    assert found["m/use/@on-failure-1/o"].after_same_host == ("p/m/read/v",)


def test_hosts_on_which_a_value_is_not_left_are_named_with_who_leaves_it() -> None:
    text = VALUE_IN_ANOTHER_TASK.replace("- name: use\n        runOnRoles: [web]", "- name: use")

    with pytest.raises(InvalidPipeline) as caught:
        planned(pipeline(text))

    assert [problem.message.split(": ", 1)[1] for problem in caught.value.problems] == [
        (
            "needs the value `k` on c, where nothing provides it: "
            "`p/m/read/v` (p.yaml:16:15) does on a, b"
        )
    ] * 2


def test_a_value_of_each_host_does_not_reach_one_of_them() -> None:
    text = VALUE_IN_ANOTHER_TASK.replace("{name: r, file", "{name: r, runOnOneOf: [web], file")

    with pytest.raises(InvalidPipeline, match="the host of a step with `runOnOneOf`") as caught:
        planned(pipeline(text))

    assert "`scope: run`" in caught.value.problems[0].hint


def test_an_assertion_takes_an_expression() -> None:
    found = nodes(
        with_steps(
            """
        - {name: s, assert: {that: facts.cpus > 1, message: m}}
        - {name: r, when: vars.on, assert: {that: "host.name == 'a' or vars.on", message: m}}
        - {name: q, assert: {that: "${vars.on}", message: m}}
        """,
            f"{HOSTS}\nvars: {{on: true}}",
        )
    )

    assert found["m/t/s"].when == "not (facts.cpus > 1)"
    assert found["m/t/r"].when == "(vars.on) and not (host.name == 'a' or vars.on)"
    assert found["m/t/s"].step.params == {"that": False, "message": "m"}
    assert found["m/t/q"].step.params == {"that": "${vars.on}", "message": "m"}


def test_a_graph_survives_its_document_and_planning_again_makes_the_same() -> None:
    text = pipeline(HOOKED)

    graph = planned(text).graph

    assert codec.decode(codec.encode(graph)) == graph == planned(text).graph


def hint_of(text: str) -> str:
    with pytest.raises(InvalidPipeline) as caught:
        planned(text)
    (problem,) = caught.value.problems
    return problem.hint


USED = 'command: {argv: [join], stdin: "${values.k}"}'
MADE = "mint: {key: k, argv: [make]}"


def a_value_used_first(**link: str) -> str:
    """Two modules of two tasks; the first step of all needs what the last one makes."""
    around = {level: f"link: {kind}" for level, kind in link.items()}
    return pipeline(f"""
{HOSTS}
{around.get("modules", "")}
modules:
  - name: m
    runOnRoles: [web]
    {around.get("tasks", "")}
    tasks:
      - {{name: t, runOnRoles: [db], steps: [{{name: a, {USED}}}]}}
      - name: u
        runOnRoles: [db]
        {around.get("steps", "")}
        steps: [{{name: b, noop: }}, {{name: c, runOnRoles: [db], {MADE}}}]
""")


class TestAValueThatIsUsedBeforeItIsProvided:
    def test_the_task_that_leaves_it_is_to_be_moved_if_the_file_gives_the_order(self) -> None:
        assert hint_of(a_value_used_first()) == "move task `u` before task `t`"

    def test_where_nothing_is_linked_an_edge_is_to_be_written(self) -> None:
        said = "say `after: [{name: u, scope: all}]` in task `t`"

        assert hint_of(a_value_used_first(tasks="parallel")) == said

    def test_a_file_without_all_its_names_gets_a_hint_all_the_same(self) -> None:
        nameless = a_value_used_first().replace("{name: t, runOnRoles", "{runOnRoles")

        with pytest.raises(InvalidPipeline) as caught:
            planned(nameless)

        assert "move task `u` before task `tasks[0]`" in [one.hint for one in caught.value.problems]

    def test_a_module_is_to_be_moved_where_they_part_in_the_modules(self) -> None:
        text = pipeline(f"""
{HOSTS}
modules:
  - {{name: m, tasks: [{{name: t, runOnRoles: [web], steps: [{{name: a, {USED}}}]}}]}}
  - {{name: n, tasks: [{{name: t, runOnRoles: [db], steps: [{{name: a, {MADE}}}]}}]}}
""")

        assert hint_of(text) == "move module `n` before module `m`"

    def test_steps_on_the_same_host_are_to_be_moved(self) -> None:
        text = with_steps(
            f"- {{name: a, runOnRoles: [db], {USED}}}\n- {{name: b, runOnRoles: [db], {MADE}}}"
        )

        assert hint_of(text) == "move step `b` before step `a`"

    def test_steps_on_different_hosts_need_a_barrier_as_well(self) -> None:
        later = with_steps(
            f"- {{name: a, runOnRoles: [web], {USED}}}\n- {{name: b, runOnRoles: [db], {MADE}}}"
        )
        edge = "`after: [{name: b, scope: all}]`"

        assert hint_of(later) == f"move step `b` before step `a`, and say {edge} in the latter"

    def test_to_follow_these_hints_one_after_the_other_leads_to_a_plan(self) -> None:
        moved = f"- {{name: b, runOnRoles: [db], {MADE}}}\n- {{name: a, runOnRoles: [web], {USED}}}"
        said = "say `after: [{name: b, scope: all}]` in step `a`"

        assert hint_of(with_steps(moved)) == said
        after = moved.replace("name: a,", "name: a, after: [{name: b, scope: all}],")
        assert planned(with_steps(after)).graph.nodes["p/m/t/a"].after == ("p/m/t/b",)

    def test_a_hook_that_leaves_it_for_all_hosts_is_to_be_a_barrier(self) -> None:
        text = pipeline(f"""
{HOSTS}
hooks: {{pre: [{{name: h, runOnRoles: [db], {MADE}}}]}}
modules:
  - {{name: m, tasks: [{{name: t, steps: [{{name: a, {USED}}}]}}]}}
""")

        assert hint_of(text) == "say `barrier: true` in the hook `h`"
        planned(text.replace("name: h,", "name: h, barrier: true,"))

    def test_what_comes_too_late_for_a_hook_is_to_be_put_before_it(self) -> None:
        text = pipeline(f"""
{HOSTS}
hooks: {{pre: [{{name: h, runOnRoles: [web], {USED}}}]}}
modules:
  - {{name: m, tasks: [{{name: t, runOnRoles: [db], steps: [{{name: a, {MADE}}}]}}]}}
""")

        assert hint_of(text) == "put a `value` or `mint` step with this `key` before this one"


class TestARingOfSiblings:
    def problem(self, steps: str, link: str = "per-host") -> tuple[str, str]:
        text = with_steps(steps).replace("- name: t\n", f"- name: t\n          link: {link}\n")
        with pytest.raises(InvalidPipeline) as caught:
            planned(text)
        (problem,) = caught.value.problems
        return problem.message.partition("each other: ")[2], problem.hint

    def test_an_edge_against_the_order_of_the_file_says_so(self) -> None:
        found = self.problem(
            "- {name: a, after: [c], noop: }\n- {name: b, noop: }\n- {name: c, noop: }"
        )

        assert found == (
            "a → b → c → a; `a` comes before `c` in the file",
            "move `c` before `a`, or say `link: parallel` around them",
        )

    def test_an_edge_that_only_repeats_the_order_of_the_file_is_not_to_blame(self) -> None:
        _, hint = self.problem(
            "- {name: a, after: [c], noop: }\n- {name: b, after: [a], noop: }\n- {name: c, noop: }"
        )

        assert hint.startswith("move `c` before `a`")

    def test_a_ring_that_is_written_as_a_whole_wants_one_edge_less(self) -> None:
        found = self.problem(
            "- {name: a, after: [b], noop: }\n- {name: b, after: [a], noop: }", link="parallel"
        )

        assert found[1] == "remove one of the edges"
        assert "in the file" not in found[0]
