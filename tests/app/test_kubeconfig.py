"""What lets people into a cluster from here."""

from __future__ import annotations

import asyncio
import os
import re
import resource
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from kubexm.app import kubeconfig, kubectl_config
from kubexm.app.known import KnownCluster
from kubexm.app.kubectl_config import Brought
from kubexm.common.about import About
from kubexm.errors import InvalidInput, LockHeld

ADMIN = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [
        {
            "name": "kubernetes",
            "cluster": {
                "server": "https://api.demo.kubexm.internal:6443",
                "certificate-authority-data": "Q0E=",
            },
        }
    ],
    "users": [{"name": "kubernetes-admin", "user": {"client-key-data": "S0VZ"}}],
    "contexts": [{"name": "x", "context": {"cluster": "kubernetes", "user": "kubernetes-admin"}}],
    "current-context": "x",
}


def known(path: Path, *servers: str, world: str | None = None) -> KnownCluster:
    server = "https://api.demo.kubexm.internal:6443"
    roles: dict[str, tuple[str, ...]] = {"control-plane": ("control1",)}
    about = About("v1.36.4", "haproxy", server, servers, "stacked", "routed", roles, str(path))
    return KnownCluster("demo", "created", about, (), datetime.now(UTC), "t", "t", world)


@pytest.fixture
def fetched(tmp_path: Path) -> Path:
    path = tmp_path / "admin.conf"
    path.write_text(yaml.safe_dump(ADMIN))
    return path


def test_a_server_is_chosen_that_takes_connections_from_here(fetched: Path) -> None:
    async def scenario() -> kubeconfig.Config:
        listener = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        dead = "https://127.0.0.1:1"
        async with listener:
            return await kubeconfig.usable(known(fetched, dead, f"https://127.0.0.1:{port}"))

    config = asyncio.run(scenario())

    place = config["clusters"][0]["cluster"]
    assert place["server"] != "https://127.0.0.1:1"
    assert place["tls-server-name"] == "api.demo.kubexm.internal"
    assert place["certificate-authority-data"] == "Q0E="
    assert config["current-context"] == config["clusters"][0]["name"] == "demo"
    assert config["users"] == [{"name": "demo-admin", "user": {"client-key-data": "S0VZ"}}]


def test_a_server_may_be_named(fetched: Path) -> None:
    own = "https://api.demo.kubexm.internal:6443"
    config = asyncio.run(kubeconfig.usable(known(fetched, "https://10.0.0.1:6443"), own))
    assert config["clusters"][0]["cluster"]["server"] == own
    assert "tls-server-name" not in config["clusters"][0]["cluster"]


def test_merging_leaves_others_alone_and_replaces_its_own(fetched: Path, tmp_path: Path) -> None:
    target = tmp_path / "kube" / "config"
    first = asyncio.run(kubeconfig.usable(known(fetched, "https://127.0.0.1:1")))
    kubectl_config.merge(first, target)
    other = {**ADMIN, "preferences": {"colors": True}, "current-context": "x"}
    target.write_text(yaml.safe_dump(other))

    kubectl_config.merge(first, target)
    kubectl_config.merge(first, target)

    found = yaml.safe_load(target.read_text())
    assert [one["name"] for one in found["clusters"]] == ["kubernetes", "demo"]
    assert [one["name"] for one in found["users"]] == ["kubernetes-admin", "demo-admin"]
    assert found["current-context"] == "x"
    assert found["preferences"] == {"colors": True}
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "\n", "# mine\n", "---\n", "kind: Config\nusers: null\n"])
def test_a_file_without_entries_gets_its_first(fetched: Path, tmp_path: Path, content: str) -> None:
    target = tmp_path / "config"
    target.write_text(content)

    kubectl_config.merge(
        asyncio.run(kubeconfig.usable(known(fetched, "https://127.0.0.1:1"))), target
    )

    found = yaml.safe_load(target.read_text())
    assert (found["apiVersion"], found["kind"]) == ("v1", "Config")
    assert [one["name"] for one in found["users"]] == ["demo-admin"]
    assert found["current-context"] == "demo"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("hello", "config:1:1: found the text `hello`, want a mapping"),
        ("- a", "config:1:1: found a list, want a mapping"),
        ("kind: Pod", "config:1:7: found the text `Pod` as `kind`, want `Config`"),
        ("apiVersion: v2", "config:1:13: found the text `v2` as `apiVersion`, want `v1`"),
        ("clusters: hello", "config:1:11: found the text `hello` as `clusters`, want a list"),
        ("users: {a: b}", "config:1:8: found a mapping as `users`, want a list"),
        (
            "clusters: [foo]",
            "config:1:12: found the text `foo` in `clusters`, want a mapping with a `name`",
        ),
        ("users: [{user: {}}]", "config:1:9: found nothing as `name` in `users`"),
        (
            "contexts: [{name: 1}]",
            "config:1:19: found the number 1 as `name` in `contexts`, want a text",
        ),
        ("current-context: []", "config:1:18: found a list as `current-context`, want a text"),
        ("users: []\nusers: []", "config:2:1: the key `users` is there twice"),
        ("a: [", "config:2:1: not YAML"),
    ],
)
def test_what_is_no_kubeconfig_is_refused_with_the_place_and_left_as_it_is(
    tmp_path: Path, content: str, problem: str
) -> None:
    target = tmp_path / "config"
    target.write_text(content)

    with pytest.raises(InvalidInput) as refused:
        kubectl_config.merge(kubectl_config.EMPTY, target)

    assert problem in str(refused.value)
    assert refused.value.hint
    assert target.read_text() == content


def test_all_that_is_wrong_with_a_file_is_told_at_once(tmp_path: Path) -> None:
    target = tmp_path / "config"
    target.write_text("kind: Pod\nusers: [a, b]\n")

    with pytest.raises(InvalidInput) as refused:
        kubectl_config.there(target)

    assert len(refused.value.problems) == 3


def test_a_link_into_a_directory_that_is_not_there_leads_to_a_new_file(
    fetched: Path, tmp_path: Path
) -> None:
    link = tmp_path / "config"
    link.symlink_to(tmp_path / "elsewhere" / "kube" / "config")

    kubectl_config.merge(
        asyncio.run(kubeconfig.usable(known(fetched, "https://127.0.0.1:1"))), link
    )

    assert link.is_symlink()
    assert "demo-admin" in (tmp_path / "elsewhere" / "kube" / "config").read_text()


def test_what_can_not_be_a_file_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    file, loop = tmp_path / "file", tmp_path / "loop"
    file.touch()
    loop.symlink_to(loop)
    for place, why in (
        (tmp_path, f"`{tmp_path}` is no file"),
        (Path("/dev/null"), "`/dev/null` is no file"),
        (file / "config", f"`{file}` is no directory"),
        (file / "kube" / "config", f"`{file}` is no directory"),
        (loop, f"`{loop}` is no file"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        with pytest.raises(InvalidInput, match=re.escape(why)) as refused:
            kubectl_config.there(place)
        assert "KUBECONFIG" in refused.value.hint


def test_a_directory_that_takes_no_file_is_refused(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    if root := os.getuid() == 0:
        os.setreuid(65534, -1)  # root may write anywhere

    try:
        with pytest.raises(InvalidInput, match=f"`{closed}` may not be written to"):
            kubectl_config.there(closed / "config")
    finally:
        if root:
            os.setreuid(0, -1)


def test_a_write_that_fails_leaves_the_file_as_it_was(fetched: Path, tmp_path: Path) -> None:
    config = asyncio.run(kubeconfig.usable(known(fetched, "https://127.0.0.1:1")))
    target = tmp_path / "kube" / "config"
    target.parent.mkdir()
    target.write_text("kind: Config")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(InvalidInput, match=f"can't use `{target}`: File too large"):
            kubectl_config.merge(config, target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert [*target.parent.iterdir()] == [target]
    assert target.read_text() == "kind: Config"


def test_where_kubectl_looks_first(tmp_path: Path) -> None:
    both = os.pathsep.join((str(tmp_path / "a"), str(tmp_path / "b")))
    assert kubectl_config.usual_place({"KUBECONFIG": both}) == tmp_path / "a"
    assert kubectl_config.usual_place({"KUBECONFIG": f"{os.pathsep}{both}"}) == tmp_path / "a"
    for nothing in ({}, {"KUBECONFIG": ""}, {"KUBECONFIG": os.pathsep}):
        assert kubectl_config.usual_place(nothing).parts[-2:] == (".kube", "config")


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="was not fetched, or is gone"):
        asyncio.run(kubeconfig.usable(known(tmp_path / "nothing", "https://127.0.0.1:1")))
    with pytest.raises(InvalidInput, match="is simulated"):
        asyncio.run(kubeconfig.usable(known(tmp_path, "https://127.0.0.1:1", world="/w")))


def merged(path: Path, name: str = "demo", authority: str = "Q0E=") -> Brought:
    """A file into which a cluster was brought."""
    config = of(name, authority)
    kubectl_config.merge(config, path)
    return kubectl_config.brought(config, path)


def of(name: str, authority: str = "Q0E=") -> kubeconfig.Config:
    place = {"server": "https://10.0.0.1:6443", "certificate-authority-data": authority}
    return {
        **kubectl_config.EMPTY,
        "clusters": [{"name": name, "cluster": place}],
        "users": [{"name": f"{name}-admin", "user": {"client-key-data": "S0VZ"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": f"{name}-admin"}}],
        "current-context": name,
    }


def names(path: Path) -> dict[str, list[str]]:
    found = yaml.safe_load(path.read_text())
    return {key: [one["name"] for one in found[key]] for key in ("clusters", "users", "contexts")}


def test_what_was_brought_in_is_taken_out_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "config"
    target.write_text(yaml.safe_dump({**ADMIN, "preferences": {"colors": True}}))
    before = yaml.safe_load(target.read_text())
    what = merged(target)

    assert kubectl_config.remove(what)
    assert not kubectl_config.remove(what)

    assert yaml.safe_load(target.read_text()) == before
    assert [*tmp_path.iterdir()] == [target]


def test_the_context_in_use_is_used_no_more_once_its_cluster_is_taken_out(tmp_path: Path) -> None:
    target = tmp_path / "config"
    what = merged(target)
    assert yaml.safe_load(target.read_text())["current-context"] == "demo"

    kubectl_config.remove(what)

    assert yaml.safe_load(target.read_text())["current-context"] == ""
    assert names(target) == {"clusters": [], "users": [], "contexts": []}


def test_a_cluster_of_the_same_name_that_is_another_stays(tmp_path: Path) -> None:
    target = tmp_path / "config"
    what = merged(target)
    merged(target, authority="T1RIRVI=")
    before = target.read_text()

    assert not kubectl_config.remove(what)
    assert target.read_text() == before


def test_what_somebody_has_made_of_the_entries_stays(tmp_path: Path) -> None:
    target = tmp_path / "config"
    what = merged(target)
    found = yaml.safe_load(target.read_text())
    found["contexts"][0]["context"]["cluster"] = "other"
    target.write_text(yaml.safe_dump(found))

    assert kubectl_config.remove(what)

    assert names(target) == {"clusters": [], "users": ["demo-admin"], "contexts": ["demo"]}
    assert yaml.safe_load(target.read_text())["current-context"] == "demo"


def test_what_is_no_file_any_more_has_nothing_to_take_out(tmp_path: Path) -> None:
    what = merged(tmp_path / "kube" / "config")
    (tmp_path / "kube" / "config").unlink()
    (tmp_path / "kube").rmdir()

    assert not kubectl_config.remove(what)
    assert [*tmp_path.iterdir()] == []


def test_who_merges_at_the_same_time_loses_nothing(tmp_path: Path) -> None:
    target = tmp_path / "config"
    many = [f"c{number}" for number in range(8)]

    with ThreadPoolExecutor(len(many)) as pool:
        [*pool.map(lambda name: merged(target, name), many)]

    assert sorted(names(target)["contexts"]) == sorted(many)
    assert [*tmp_path.iterdir()] == [target]


def test_a_file_that_kubectl_is_changing_is_waited_for(tmp_path: Path) -> None:
    target, lock = tmp_path / "config", tmp_path / "config.lock"
    lock.touch()

    with ThreadPoolExecutor(1) as pool:
        merging = pool.submit(merged, target)
        lock.unlink()
        merging.result()

    assert names(target)["contexts"] == ["demo"]


def test_a_file_that_stays_locked_is_told_of_with_what_to_do(tmp_path: Path) -> None:
    target, lock = tmp_path / "config", tmp_path / "config.lock"
    what = merged(target)
    before = target.read_text()
    lock.touch()

    for change in (
        lambda: kubectl_config.merge(of("other"), target, patience=0),
        lambda: kubectl_config.remove(what, patience=0),
    ):
        with pytest.raises(LockHeld, match=f"`{target}`: it holds `{lock}`") as held:
            change()
        assert f"rm {lock}" in held.value.hint

    assert target.read_text() == before
    assert lock.exists()


@pytest.mark.parametrize(("owner", "moment"), [(os, "fsync"), (Path, "replace")])
def test_an_interruption_leaves_the_file_as_it_was_and_no_credentials_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, moment: str
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    target = tmp_path / "config"
    kubectl_config.merge(of("demo"), target)
    before = target.read_text()
    monkeypatch.setattr(owner, moment, interrupted)

    with pytest.raises(KeyboardInterrupt):
        kubectl_config.merge(of("other"), target)

    assert [path.name for path in tmp_path.iterdir()] == ["config"]
    assert target.read_text() == before
