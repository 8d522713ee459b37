"""Kubeconfigs: complete by themselves, merged without loss, and read as YAML by others."""

import base64
import copy
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubexm.errors import InvalidInput
from kubexm.pki import kubeconfig
from kubexm.pki.kubeconfig import Access, Document

ACCESS = Access(
    cluster="blue",
    server="https://lb.example:6443",
    user="blue-admin",
    authority=b"-----BEGIN CERTIFICATE-----\nauthority",
    certificate=b"-----BEGIN CERTIFICATE-----\nclient",
    key=b"-----BEGIN EC PRIVATE KEY-----\nsecret",
)
NEW = kubeconfig.document(ACCESS)


def existing() -> Document:
    """What people have: other clusters, plugins, preferences, keys that we don't know."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {"colors": True},
        "clusters": [
            {"name": "red", "cluster": {"server": "https://red", "tls-server-name": "r"}},
            {"name": "blue", "cluster": {"server": "https://former"}},
            {"name": "green", "cluster": {"server": "https://green"}},
        ],
        "users": [{"name": "red-admin", "user": {"exec": {"command": "login", "args": ["-x"]}}}],
        "contexts": [{"name": "red", "context": {"cluster": "red", "user": "red-admin"}}],
        "current-context": "red",
        "extensions": [{"name": "x", "extension": {"last": 3}}],
    }


def test_a_document_has_all_inside() -> None:
    assert NEW["current-context"] == "blue-admin@blue"
    assert NEW["contexts"] == [
        {"context": {"cluster": "blue", "user": "blue-admin"}, "name": "blue-admin@blue"}
    ]
    (cluster,), (user,) = NEW["clusters"], NEW["users"]
    assert cluster["cluster"]["server"] == "https://lb.example:6443"
    data = cluster["cluster"]["certificate-authority-data"]
    assert base64.b64decode(data) == ACCESS.authority
    assert base64.b64decode(user["user"]["client-key-data"]) == ACCESS.key


def test_the_key_does_not_show() -> None:
    assert "secret" not in repr(ACCESS)
    assert "lb.example" in repr(ACCESS)


def test_the_text_is_that_of_kubectl() -> None:
    lines = kubeconfig.text(NEW).splitlines()

    assert lines[:6] == [
        "apiVersion: v1",
        "clusters:",
        "- cluster:",
        f"    certificate-authority-data: {base64.b64encode(ACCESS.authority).decode()}",
        "    server: https://lb.example:6443",
        "  name: blue",
    ]
    assert "current-context: blue-admin@blue" in lines


class TestMerging:
    def test_replaces_what_has_the_same_name_where_it_stands(self) -> None:
        whole = kubeconfig.merged(existing(), NEW)

        assert [entry["name"] for entry in whole["clusters"]] == ["red", "blue", "green"]
        assert whole["clusters"][1] == NEW["clusters"][0]
        assert [entry["name"] for entry in whole["users"]] == ["red-admin", "blue-admin"]

    def test_leaves_all_else_as_it_was(self) -> None:
        before = existing()

        whole = kubeconfig.merged(before, NEW)

        assert before == existing()
        for key in ("preferences", "extensions", "current-context"):
            assert whole[key] == before[key]
        assert whole["clusters"][0] == before["clusters"][0]
        assert whole["users"][0] == before["users"][0]

    def test_does_nothing_the_second_time(self) -> None:
        once = kubeconfig.merged(existing(), NEW)

        assert kubeconfig.merged(once, NEW) == once

    @pytest.mark.parametrize("empty", [{}, {"clusters": None, "users": [], "current-context": ""}])
    def test_into_nothing_gives_the_new_one(self, empty: Document) -> None:
        assert kubeconfig.merged(empty, NEW) == NEW

    def test_refuses_what_is_no_kubeconfig_with_every_reason(self) -> None:
        wrong = {
            "kind": "Pod",
            "clusters": {},
            "users": [{"user": {}}, "x", {"name": "u", "user": []}],
            "contexts": [{"name": "a", "context": 3}, {"name": "a"}],
        }
        wrong["clusters"] = {"a": 1}
        before = copy.deepcopy(wrong)

        with pytest.raises(InvalidInput) as caught:
            kubeconfig.merged(wrong, NEW)

        assert [str(problem) for problem in caught.value.problems] == [
            "found kind `Pod`, want `Config`",
            "`clusters` is no list",
            "contexts[0]: `a` says nothing of itself",
            "contexts[1]: `a` is there once more",
            "users[0]: has no name",
            "users[1]: has no name",
        ]
        assert wrong == before


class TestClientCertificate:
    def test_is_that_of_the_current_context(self) -> None:
        whole = kubeconfig.merged(existing(), NEW)
        whole["current-context"] = ACCESS.context

        assert kubeconfig.client_certificate(whole) == ACCESS.certificate

    def test_is_that_of_the_context_that_is_named(self) -> None:
        whole = kubeconfig.merged(existing(), NEW)

        assert kubeconfig.client_certificate(whole, ACCESS.context) == ACCESS.certificate

    def test_is_none_where_a_program_logs_in(self) -> None:
        assert kubeconfig.client_certificate(existing()) is None

    @pytest.mark.parametrize("context", ["nobody", "dangling"])
    def test_of_a_context_or_user_that_is_not_there_is_refused(self, context: str) -> None:
        found = existing()
        found["contexts"].append({"name": "dangling", "context": {"user": "gone"}})

        with pytest.raises(InvalidInput, match=r"has no `(nobody|gone)` under"):
            kubeconfig.client_certificate(found, context)

    def test_that_is_damaged_is_refused(self) -> None:
        found = copy.deepcopy(NEW)
        found["users"][0]["user"]["client-certificate-data"] = "%%%"

        with pytest.raises(InvalidInput, match="not written in base64"):
            kubeconfig.client_certificate(found)


def of_clusters(found: dict[str, int]) -> Document:
    entries = [{"name": name, "cluster": {"server": str(n)}} for name, n in found.items()]
    return {"clusters": entries, "users": [], "contexts": []}


clusters = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9))


@given(clusters, clusters)
def test_merging_is_the_union_in_which_the_new_one_wins(
    before: dict[str, int], new: dict[str, int]
) -> None:
    whole = kubeconfig.merged(of_clusters(before), of_clusters(new))

    assert whole["clusters"] == of_clusters({**before, **new})["clusters"]


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=12)
words = st.sampled_from(["", "yes", "No", "null", "1e3", "0x1f", "12:30", "~", "- a", "a: b", "a#"])
keys = st.text(max_size=12) | words
values = st.recursive(
    scalars | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(keys, values, max_size=4))
def test_whatever_is_in_a_document_comes_back_from_its_text(found: dict[str, Any]) -> None:
    assert yaml.safe_load(kubeconfig.text(found)) == found
