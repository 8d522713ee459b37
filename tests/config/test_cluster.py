"""A cluster file is read as a whole: ranges, roles, what follows from what is not said."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.config.test_rules import SOUND, cluster

from kubexm.app import clusters
from kubexm.app.params import ClusterParams
from kubexm.config.cluster import checked, parse_cluster
from kubexm.config.model.cluster import ClusterFile
from kubexm.config.reference import explained
from kubexm.config.rules.rule import Declared
from kubexm.document import source
from kubexm.document.docstrings import class_text, field_texts
from kubexm.document.forms import Form
from kubexm.document.schema import within
from kubexm.errors import InvalidFile, InvalidInput


def declared(**spec: Any) -> Declared:
    return checked(source.from_data(cluster(**spec))).declared


def roles(found: Declared) -> dict[str, tuple[str, ...]]:
    return {member.name: member.roles for member in found.members}


def test_without_groups_the_first_host_leads_and_the_others_work() -> None:
    assert roles(declared()) == {
        "node1": ("control-plane",),
        "node2": ("worker",),
        "node3": ("worker",),
    }


def test_a_host_alone_leads_and_works() -> None:
    found = declared(hosts=[{"name": "alone", "address": "10.0.0.1"}])

    assert roles(found) == {"alone": ("control-plane", "worker")}


def test_control_planes_work_only_where_nobody_else_does() -> None:
    found = declared(roleGroups={"control-plane": ["node[1:3]"]})

    assert set(roles(found).values()) == {("control-plane", "worker")}


def test_a_host_in_any_group_is_no_worker_unless_it_says_so() -> None:
    groups = {"control-plane": ["node1"], "etcd": ["node2"], "worker": ["node[2:3]"]}

    assert roles(declared(roleGroups=groups)) == {
        "node1": ("control-plane",),
        "node2": ("worker", "etcd"),
        "node3": ("worker",),
    }


def test_ranges_of_addresses_go_along_with_those_of_names() -> None:
    found = declared(
        hosts=[
            {
                "name": "n[1:2]",
                "address": "host[1:2].example",
                "internalAddresses": ["10.0.0.[1:2]"],
            }
        ]
    )

    assert [(one.address, one.internal) for one in found.members] == [
        ("host1.example", ("10.0.0.1",)),
        ("host2.example", ("10.0.0.2",)),
    ]


@pytest.mark.parametrize(
    ("planes", "etcd", "endpoint", "kind"),
    [(1, 0, "single", "stacked"), (3, 0, "haproxy", "stacked"), (1, 3, "single", "systemd")],
)
def test_kinds_follow_from_the_hosts(planes: int, etcd: int, endpoint: str, kind: str) -> None:
    groups = {"control-plane": [f"node[1:{planes}]"]}
    if etcd:
        groups["etcd"] = [f"node[1:{etcd}]"]

    found = declared(roleGroups=groups)

    assert (found.endpoint_kind, found.etcd_kind) == (endpoint, kind)


def test_versions_have_one_spelling() -> None:
    assert declared(kubernetes={"version": "1.36.3"}).spec.kubernetes.version == "v1.36.3"


def test_a_secret_that_is_written_out_is_refused_and_never_shown(tmp_path: Any) -> None:
    data = cluster(ssh={"password": "hunter2"})
    file = tmp_path / "c.json"
    file.write_bytes(msgspec.json.encode(data))

    with pytest.raises(InvalidFile) as caught:
        clusters.validate(ClusterParams(file))
    shown = [
        clusters.show(ClusterParams(file, allow_literal_secrets=True), defaults=defaults)
        for defaults in (False, True)
    ]

    assert "a secret written out" in str(caught.value)
    assert "hunter2" not in f"{caught.value}{shown}"
    assert [one["spec"]["ssh"]["password"] for one in shown] == ["***", "***"]


@pytest.mark.parametrize("name", SOUND)
def test_what_is_shown_in_full_declares_the_same(name: str, tmp_path: Any) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(msgspec.json.encode(cluster(**SOUND[name])))

    shown = clusters.show(ClusterParams(file), defaults=True)
    file.write_bytes(msgspec.json.encode(shown))

    assert clusters.show(ClusterParams(file), defaults=True) == shown


def test_every_form_and_every_key_tells_what_it_is_for() -> None:
    forms: list[type[Form]] = [ClusterFile, *within(ClusterFile)]

    assert [form.__name__ for form in forms if not class_text(form)] == []
    assert [
        f"{form.__name__}.{name}"
        for form in forms
        for name, field in form.fields().items()
        if "\0" not in field.alias and not field_texts(form).get(name)
    ] == []


def test_a_key_is_explained_with_its_value_and_default() -> None:
    found = explained("spec.network.nodeMask")

    assert (found.value, found.default) == ("whole number", "`24`")
    assert found.text == "The prefix of the pod addresses of one host."


def test_a_key_of_a_list_is_explained_as_that_of_its_entries() -> None:
    assert explained("spec.hosts.taints.effect").default == "required"
    assert ("address", "Where it is reached; its name if nothing is said.") in explained(
        "spec.hosts"
    ).keys


@pytest.mark.parametrize(
    ("path", "hint"),
    [("spec.netwrk", "did you mean `network`?"), ("spec.sudo.more", "it has no keys")],
)
def test_an_unknown_key_is_told_with_the_nearest(path: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        explained(path)

    assert caught.value.hint == hint


def test_the_schema_has_every_key_of_every_form() -> None:
    parts = clusters.schema()["$defs"]

    assert {name: part["properties"].keys() for name, part in parts.items()} == {
        form.__name__: {field.alias for field in form.fields().values() if "\0" not in field.alias}
        for form in within(ClusterFile)
    }
    assert all(part["additionalProperties"] is False for part in parts.values())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 70000) | st.sampled_from(["", "x", "10.0.0.0/8"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner),
    max_leaves=6,
)
PATHS = [
    ("metadata",),
    ("metadata", "name"),
    ("spec",),
    ("spec", "hosts"),
    ("spec", "hosts", 0),
    ("spec", "hosts", 0, "name"),
    ("spec", "hosts", 0, "address"),
    *(("spec", field.alias) for field in within(ClusterFile)[1].fields().values()),
    ("spec", "network", "podCIDR"),
    ("spec", "endpoint", "address"),
    ("spec", "roleGroups", "control-plane"),
    ("spec", "kubernetes", "version"),
]


@given(st.lists(st.tuples(st.sampled_from(PATHS), VALUES), min_size=1, max_size=4))
def test_whatever_is_written_the_answer_is_a_cluster_or_problems_with_places(
    changes: list[tuple[tuple[str | int, ...], Any]],
) -> None:
    data = msgspec.json.decode(msgspec.json.encode(cluster(network={}, endpoint={}, roleGroups={})))
    for path, value in changes:
        _set(data, path, value)

    try:
        parse_cluster(msgspec.json.encode(data), "c.json")
    except InvalidFile as error:
        told = error.problems
    else:
        return
    assert told
    assert all(one.hint and one.where.startswith("c.json:1:") for one in told)


def _set(data: Any, path: tuple[str | int, ...], value: Any) -> None:
    """Write it there, unless an earlier change has left nothing to write to."""
    with suppress(KeyError, IndexError, TypeError):
        for part in path[:-1]:
            data = data[part]
        data[path[-1]] = value
