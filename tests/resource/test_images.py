"""Image references as people write them, and images that a store keeps."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.resource import made_images

from kubexm.errors import InvalidInput, StepFailed
from kubexm.resource import images, manifests
from kubexm.resource.images import Image, Reference, find, forget, parse, record, recorded
from kubexm.resource.store import Store

SHA256 = "sha256:" + "a" * 64
SHA512 = "sha512:" + "b" * 128

WRITTEN = {
    "nginx": "docker.io/library/nginx:latest",
    "nginx:1.27": "docker.io/library/nginx:1.27",
    "nginx:5000": "docker.io/library/nginx:5000",
    "team/app": "docker.io/team/app:latest",
    "docker.io/nginx": "docker.io/library/nginx:latest",
    "index.docker.io/nginx": "docker.io/library/nginx:latest",
    "index.docker.io/team/app:1": "docker.io/team/app:1",
    "docker.io/library/nginx": "docker.io/library/nginx:latest",
    "registry.k8s.io/pause:3.10": "registry.k8s.io/pause:3.10",
    "quay.io/coreos/etcd:v3.5.1": "quay.io/coreos/etcd:v3.5.1",
    "localhost/app": "localhost/app:latest",
    "localhost:5000/app": "localhost:5000/app:latest",
    "host:5000/a/b/c:tag": "host:5000/a/b/c:tag",
    "Host/app": "Host/app:latest",
    "127.0.0.1:5000/app:1": "127.0.0.1:5000/app:1",
    "[::1]:5000/app:1": "[::1]:5000/app:1",
    "[fe80::1]/app": "[fe80::1]/app:latest",
    f"nginx@{SHA256}": f"docker.io/library/nginx@{SHA256}",
    f"nginx:1.27@{SHA256}": f"docker.io/library/nginx:1.27@{SHA256}",
    f"host:5000/app@{SHA512}": f"host:5000/app@{SHA512}",
    "a_b/c__d/e--f/g.h": "docker.io/a_b/c__d/e--f/g.h:latest",
    f"app:{'t' * 128}": f"docker.io/library/app:{'t' * 128}",
    "app:_V.1-x": "docker.io/library/app:_V.1-x",
}

WRONG = {
    "": "repository",
    ":": "tag",
    "nginx:": "found `` as tag",
    "nginx@": "found `` as digest",
    "Nginx": "want `library/nginx`",
    "example.org/Team/app": "want `team/app`",
    "team//app": "found `team//app` as repository",
    "/app": "repository",
    "app/": "repository",
    "example.org/": "repository",
    "-app": "repository",
    "app..b": "repository",
    "app___b": "repository",
    "host:port/app": "found `host:port` as registry",
    "host:123456/app": "registry",
    "-host.org/app": "found `-host.org` as registry",
    "a.b/c:d:e": "repository",
    "app:.tag": "found `.tag` as tag",
    f"app:{'t' * 129}": "tag",
    "app@sha256:abc": "found `sha256:abc` as digest",
    f"app@sha256:{'A' * 64}": "digest",
    f"app@md5:{'a' * 32}": "digest",
    "a" * 64: "found the id of an image, want its name",
    "app image": "repository",
    "app:1\n": "tag",
    f"example.org/{'a' * 256}": "256 characters, want at most 255",
}

_words = st.from_regex(r"[a-z0-9]{1,8}([._-][a-z0-9]{1,5})?", fullmatch=True)
_hosts = st.one_of(
    st.just("localhost"),
    st.from_regex(r"[a-z0-9]{1,8}\.[a-z]{2,3}(:[0-9]{1,5})?", fullmatch=True),
    st.from_regex(r"[a-z0-9]{1,8}:[0-9]{1,5}", fullmatch=True),
)
_tags = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True)
_digests = st.from_regex(r"sha256:[0-9a-f]{64}", fullmatch=True)


@pytest.mark.parametrize(("text", "full"), WRITTEN.items())
def test_a_short_name_stands_for_a_full_one(text: str, full: str) -> None:
    assert str(parse(text)) == full


@pytest.mark.parametrize(("text", "said"), WRONG.items())
def test_what_is_no_reference_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(text)

    assert said in str(refused.value)
    assert refused.value.hint


def test_all_that_is_wrong_with_a_reference_is_told_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse("-x.org/Team:.tag@sha256:1")

    assert [problem.message.split("`")[1] for problem in refused.value.problems] == [
        "-x.org",
        "Team",
        ".tag",
        "sha256:1",
    ]


@given(_hosts, st.lists(_words, min_size=1, max_size=4), _tags, st.just("") | _digests)
def test_a_full_name_stands_for_itself(host: str, words: list[str], tag: str, digest: str) -> None:
    reference = Reference(host, "/".join(words), tag, digest)

    assert parse(str(reference)) == reference


@given(st.text(alphabet="aA0.:/@-_[]", max_size=30))
def test_any_text_is_a_reference_that_stays_the_same_or_is_refused(text: str) -> None:
    with suppress(InvalidInput):
        found = parse(text)

        assert parse(str(found)) == found
        assert found.wanted


def test_a_digest_is_wanted_rather_than_a_tag() -> None:
    assert parse(f"nginx:1@{SHA256}").wanted == SHA256
    assert parse("nginx:1").wanted == "1"


def test_an_image_has_a_name_in_another_registry_too() -> None:
    nginx = parse("nginx:1")

    assert str(nginx.within("local:5000")) == "local:5000/library/nginx:1"
    assert str(nginx.within("local:5000", "hub")) == "local:5000/hub/library/nginx:1"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_a_recorded_image_is_found_by_its_name_and_outlives_a_clearing_up(store: Store) -> None:
    several, one = made_images.image(store), made_images.sole(store)
    before = made_images.everything(several, store)
    record(several, store)
    record(one, store)

    store.prune()

    assert several.name is not None
    assert one.name is not None
    assert find(several.name, store) == several
    assert find(one.name, store) == one
    assert recorded(store) == (several, one)
    assert made_images.everything(several, store) == before


def test_what_was_not_recorded_is_cleared_up(store: Store) -> None:
    found = made_images.image(store)

    store.prune()

    assert store.blobs() == []
    assert found.name is not None
    assert find(found.name, store) is None


def test_a_forgotten_image_is_cleared_up_and_what_another_shares_stays(store: Store) -> None:
    first = made_images.image(store, "example.org/app:1", text=b"first")
    second = made_images.image(store, "example.org/app:2", ("amd64",), text=b"first")
    for each in (first, second):
        record(each, store)
    kept = made_images.everything(second, store)

    forget(parse("example.org/app:1"), store)
    store.prune()

    assert recorded(store) == (second,)
    assert made_images.everything(second, store) == kept
    assert len(store.blobs()) == len(kept)


def test_an_image_with_two_names_stays_while_one_is_left(store: Store) -> None:
    first = made_images.image(store, "example.org/app:1")
    second = Image(first.root, parse("example.org/app:latest"))
    for each in (first, second):
        record(each, store)

    forget(parse("example.org/app:1"), store)
    store.prune()

    assert recorded(store) == (second,)
    assert made_images.everything(second, store)


def test_an_image_that_is_not_whole_is_not_recorded(store: Store) -> None:
    found = made_images.image(store)
    layer = manifests.contents([found.root], store).blobs[-1]
    store.discard(manifests.sha256_of(layer.digest))

    with pytest.raises(StepFailed, match=manifests.sha256_of(layer.digest)):
        record(found, store)

    assert images.recorded(store) == ()
