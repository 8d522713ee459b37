"""Buckets: signatures as AWS publishes them, and a server that believes no others."""

import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.resource.serving import Answer, Reply, Request, Server, file, in_turn, serving

from kubexm.errors import InvalidInput, StepFailed
from kubexm.resource import s3
from kubexm.resource.fetch import Artifact, Options, fetch
from kubexm.resource.http import Settings
from kubexm.resource.s3 import Access
from kubexm.resource.sources import BucketSource
from kubexm.resource.store import Store

# From "Signature calculations for the Authorization header" in the API reference of Amazon S3.
EXAMPLE = Access(
    access_key="AKIAIOSFODNN7EXAMPLE", secret_key="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
)
WHEN = datetime(2013, 5, 24, tzinfo=UTC)
BUCKET = "https://examplebucket.s3.amazonaws.com"
CONTENT = bytes(range(256)) * 4000


@pytest.mark.parametrize(
    ("method", "url", "headers", "payload", "signature"),
    [
        (
            "GET",
            f"{BUCKET}/test.txt",
            {"Range": "bytes=0-9"},
            b"",
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            "PUT",
            f"{BUCKET}/test$file.text",
            {
                "Date": "Fri, 24 May 2013 00:00:00 GMT",
                "x-amz-storage-class": "REDUCED_REDUNDANCY",
            },
            b"Welcome to Amazon S3.",
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        (
            "GET",
            f"{BUCKET}/?lifecycle",
            {},
            b"",
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            "GET",
            f"{BUCKET}?prefix=J&max-keys=2",
            {},
            b"",
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
)
def test_requests_are_signed_as_in_the_published_examples(
    method: str, url: str, headers: Mapping[str, str], payload: bytes, signature: str
) -> None:
    signed = s3.signed(method, url, headers, EXAMPLE, WHEN, sha256(payload).hexdigest())

    names = {*map(str.lower, headers), "host", "x-amz-content-sha256", "x-amz-date"}
    assert signed["Authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        f"SignedHeaders={';'.join(sorted(names))},Signature={signature}"
    )


def test_without_a_key_nothing_is_signed() -> None:
    assert s3.signed("GET", BUCKET, {"Range": "bytes=1-"}, Access(), WHEN) == {"Range": "bytes=1-"}


def test_a_session_is_part_of_what_is_signed() -> None:
    session = Access(access_key="key", secret_key="secret", session_token="of an hour")

    signed = s3.signed("GET", BUCKET, {}, session, WHEN)

    assert signed["x-amz-security-token"] == "of an hour"
    assert "x-amz-security-token" in signed["Authorization"]


def test_access_shows_no_secret() -> None:
    access = Access(access_key="key", secret_key="hush", session_token="hush too")

    assert "hush" not in f"{access!r} {Options(buckets={'*': access})!r}"
    assert "hush" not in str(access)


def test_a_key_is_written_into_an_address_as_servers_want_it() -> None:
    source = BucketSource("files", "a b/c+d/ü$.tgz")

    assert (
        s3.address(Access(endpoint="http://minio:9000/"), source)
        == "http://minio:9000/files/a%20b/c%2Bd/%C3%BC%24.tgz"
    )
    assert s3.address(Access(region="eu-west-1"), source).startswith(
        "https://s3.eu-west-1.amazonaws.com/files/"
    )


def guarded(answer: Answer) -> Answer:
    """Let in only who has signed the very request that arrives, as it stands on the wire."""

    def check(request: Request) -> Reply:
        return answer(request) if _is_proved(request) else Reply(403)

    return check


def _is_proved(request: Request) -> bool:
    form = r"AWS4-HMAC-SHA256 Credential=([^/]+)/(.+),SignedHeaders=(.+),Signature=(\w+)"
    proof = re.fullmatch(form, request.headers.get("authorization", ""))
    if proof is None or proof[1] != ACCESS.access_key:
        return False
    headers = "".join(f"{name}:{request.headers[name]}\n" for name in proof[3].split(";"))
    payload = request.headers["x-amz-content-sha256"]
    text = f"{request.method}\n{request.target}\n\n{headers}\n{proof[3]}\n{payload}"
    key = f"AWS4{ACCESS.secret_key}".encode()
    to_sign = ["AWS4-HMAC-SHA256", request.headers["x-amz-date"], proof[2]]
    to_sign.append(sha256(text.encode()).hexdigest())
    for word in (*proof[2].split("/"), "\n".join(to_sign)):
        key = hmac.digest(key, word.encode(), "sha256")
    return key.hex() == proof[4]


ACCESS = Access(region="lab", access_key="key of the lab", secret_key="secret of the lab")


def options(server: Server, access: Access = ACCESS) -> Options:
    web = Settings(first_pause=0.001, attempts=3)
    return Options(web=web, buckets={"files": replace(access, endpoint=server.url)})


def artifact(key: str = "a tool/v1+2/linux$.tgz") -> Artifact:
    return Artifact(name="tool", sources=(f"s3://files/{key}",), sha256=sha256(CONTENT).hexdigest())


async def test_an_object_is_fetched_by_who_has_the_key(tmp_path: Path) -> None:
    async with serving(guarded(file(CONTENT))) as server:
        (fetched,) = await fetch([artifact()], Store(tmp_path), options(server))

    assert fetched.source == "s3://files/a tool/v1+2/linux$.tgz"
    assert server.requests[0].target == "/files/a%20tool/v1%2B2/linux%24.tgz"


async def test_an_object_is_not_given_to_who_has_another_secret(tmp_path: Path) -> None:
    other = Access(region="lab", access_key="key of the lab", secret_key="hush")

    async with serving(guarded(file(CONTENT))) as server:
        with pytest.raises(StepFailed, match="it does not let us have this") as caught:
            await fetch([artifact()], Store(tmp_path), options(server, other))

    assert "hush" not in f"{caught.value}"


async def test_a_public_object_is_fetched_without_a_key(tmp_path: Path) -> None:
    async with serving(file(CONTENT)) as server:
        await fetch([artifact()], Store(tmp_path), options(server, Access()))

    assert server.asked("authorization") == [None]


async def test_an_interrupted_object_is_resumed_with_a_signature_of_its_own(
    tmp_path: Path,
) -> None:
    answer = guarded(in_turn(file(CONTENT, sent=300_000), file(CONTENT)))

    async with serving(answer) as server:
        await fetch([artifact()], Store(tmp_path), options(server))

    assert server.asked("range") == [None, "bytes=300000-"]
    assert Store(tmp_path).verify_all() == []


async def test_no_signature_follows_a_redirect(tmp_path: Path) -> None:
    async with serving(file(CONTENT)) as elsewhere:
        answer = in_turn(Reply(307, headers={"Location": f"{elsewhere.url}/files/x"}))
        async with serving(answer) as server:
            with pytest.raises(StepFailed, match="it says that this is elsewhere"):
                await fetch([artifact()], Store(tmp_path), options(server))

    assert elsewhere.requests == []


async def test_a_bucket_without_an_endpoint_is_refused_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    with pytest.raises(InvalidInput, match="nobody says where `s3://files/x` is"):
        await fetch([artifact("x")], Store(tmp_path), Options())
