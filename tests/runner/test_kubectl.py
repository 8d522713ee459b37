"""kubectl: objects by its standard streams, and what its answers mean."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.runner.hosts import Scripted, complained, said, scripted

from kubexm.connector.base import Command, Completed
from kubexm.errors import CommandFailed, StepFailed
from kubexm.runner import kubectl
from kubexm.runner.host import Host

KC = "/usr/local/bin/kubectl --kubeconfig /etc/kubernetes/admin.conf"
DIFF = f"{KC} diff"
NO_NAMESPACE = 'Error from server (NotFound): namespaces "shop" not found'
NO_KIND = (
    'error: resource mapping not found for name: "x" namespace: "" from "STDIN":'
    ' no matches for kind "Pool" in version "example.org/v1"\nensure CRDs are installed first'
)
REFUSED = "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host?"
CHANGED = """\
diff -u -N /tmp/LIVE-4242/v1.ConfigMap.default.shop /tmp/MERGED-1717/v1.ConfigMap.default.shop
--- /tmp/LIVE-4242/v1.ConfigMap.default.shop\t2026-01-02 03:04:05.000000000 +0000
+++ /tmp/MERGED-1717/v1.ConfigMap.default.shop\t2026-01-02 03:04:05.000000000 +0000
@@ -1,5 +1,5 @@
 data:
-  colour: red
+  colour: blue
"""


def difference(answer: Completed) -> str | None:
    found, _ = scripted(lambda host: kubectl.difference(host, "kind: X"), {DIFF: answer})
    return found


def test_objects_that_are_the_same_do_not_differ() -> None:
    assert difference(said("")) == ""


def test_a_difference_is_told_without_the_names_of_temporary_files() -> None:
    assert difference(said(CHANGED, 1)) == (
        "--- v1.ConfigMap.default.shop\n+++ v1.ConfigMap.default.shop\n"
        "@@ -1,5 +1,5 @@\n data:\n-  colour: red\n+  colour: blue"
    )


@pytest.mark.parametrize("said_of_it", [NO_NAMESPACE, NO_KIND])
def test_what_the_cluster_has_no_place_for_yet_is_not_there(said_of_it: str) -> None:
    assert difference(complained(said_of_it, 2)) is None


def test_a_server_that_does_not_answer_is_a_failure_that_can_be_told_from_others() -> None:
    with pytest.raises(CommandFailed) as caught:
        difference(complained(f"{REFUSED}\n{NO_NAMESPACE}", 2))

    assert kubectl.is_silent(caught.value)
    assert "API server" in caught.value.hint
    assert not kubectl.is_silent(CommandFailed(("kubectl",), 1, stderr=NO_NAMESPACE))
    assert not kubectl.is_silent(StepFailed(REFUSED))


@pytest.mark.parametrize(
    "words",
    [
        'failed to download openapi: Get "https://a:6443/x": dial tcp: connect: connection refused',
        "Unable to connect to the server: dial tcp: lookup api.example.org: no such host",
        "Unable to connect to the server: net/http: TLS handshake timeout",
        "Error from server (ServiceUnavailable): the server is currently unable to handle it",
        "Error from server (NotFound): the server could not find the requested resource",
    ],
)
def test_a_server_may_be_silent_in_many_ways(words: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        difference(complained(f"error: {words}", 2))

    assert kubectl.is_silent(caught.value)


def test_a_host_without_diff_is_told_what_to_install() -> None:
    missing = 'error: failed to run "diff": exec: "diff": executable file not found in $PATH'

    with pytest.raises(CommandFailed) as caught:
        difference(complained(missing, 2))

    assert "diffutils" in caught.value.hint


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ("", []),
        (json.dumps({"kind": "ConfigMap", "metadata": {"name": "a"}}), ["a"]),
        (
            json.dumps({"kind": "List", "items": [{"metadata": {"name": n}} for n in "ab"]}),
            ["a", "b"],
        ),
        (json.dumps({"kind": "NodeList", "items": []}), []),
    ],
)
def test_objects_come_alone_in_a_list_or_not_at_all(answer: str, names: Sequence[str]) -> None:
    found = kubectl.objects_of(said(answer))

    assert [one["metadata"]["name"] for one in found] == names


def test_of_a_kind_that_is_not_known_there_are_none_but_the_others_are_told() -> None:
    there = json.dumps({"kind": "ConfigMap", "metadata": {"name": "a"}})
    answer = Completed(1, there.encode(), NO_KIND.encode())

    found, host = scripted(lambda host: kubectl.existing(host, "text"), {f"{KC} get": answer})

    assert [one["metadata"]["name"] for one in found] == ["a"]
    assert host.changes == []


def test_an_answer_that_is_no_json_is_a_failure() -> None:
    with pytest.raises(StepFailed, match="did not write JSON"):
        kubectl.object_of(said("warning: something"))


class Listening(Scripted):
    """Remembers what came by standard input."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        super().__init__(answers)
        self.heard: dict[str, bytes] = {}

    async def exec(self, command: Command, sink: Any = None) -> Completed:
        self.heard[command.argv[3]] = command.stdin
        return await super().exec(command, sink)


def test_objects_go_by_standard_input_and_no_file_is_left() -> None:
    connector = Listening({})
    host = Host("there", connector)
    manifests = "kind: ConfigMap\n" * 50_000

    asyncio.run(kubectl.apply(host, manifests))
    asyncio.run(kubectl.delete(host, "kind: X"))

    ours = "--server-side --force-conflicts --field-manager kubexm -f -"
    assert connector.changes == [
        f"{KC} apply {ours}",
        f"{KC} delete --ignore-not-found --wait=false -f -",
    ]
    assert connector.heard == {"apply": manifests.encode(), "delete": b"kind: X"}
    assert connector.files == {}
