"""Images pushed to a real registry and pulled from it, over lines that break and to who may."""

import asyncio
import base64
import datetime as dt
import ipaddress
import json
import re
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import bcrypt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from tests.resource import made_images

from kubexm.errors import InvalidInput, KubexmError, Refused, StepFailed, StoreUnusable
from kubexm.resource import http, images, manifests, registry
from kubexm.resource.arriving import Origin
from kubexm.resource.http import Login, Settings
from kubexm.resource.images import Image, parse
from kubexm.resource.manifests import Descriptor
from kubexm.resource.registry import Endpoint, Registry, pull, push
from kubexm.resource.store import Store

# A registry is started for each of them.
pytestmark = pytest.mark.slow

QUICK = Settings(attempts=2, first_pause=0.001)
USER, PASSWORD = "somebody", "the word of the test"
LARGE = bytes(range(256)) * 16384
APP = parse("example.org/team/app:1")
Run = Callable[..., "Running"]


class Running(NamedTuple):
    """A registry that answers at a port of this machine, and where it keeps its data."""

    port: int
    data: Path
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def logins(self) -> dict[str, Login]:
        place = f"127.0.0.1:{self.port}"
        return {place if self.scheme == "https" else self.url: Login(USER, PASSWORD)}

    def blob(self, digest: str) -> Path:
        sha256 = manifests.sha256_of(digest)
        return self.data / "docker/registry/v2/blobs/sha256" / sha256[:2] / sha256 / "data"


@pytest.fixture
def run_registry(tmp_path: Path) -> Iterator[Run]:
    """Starts registries with parts of a configuration; they end with the test."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("docker-registry is not installed: apt-get install docker-registry")
    processes: list[subprocess.Popen[str]] = []
    readers: list[threading.Thread] = []

    def run(scheme: str = "http", **parts: Any) -> Running:
        data = tmp_path / f"registry-{len(processes)}"
        data.mkdir()
        config = {
            "version": "0.1",
            "log": {"accesslog": {"disabled": True}, "formatter": "text"},
            "storage": {"filesystem": {"rootdirectory": str(data)}},
            "http": {"addr": "127.0.0.1:0", **parts.pop("http", {})},
            **parts,
        }
        (data / "config.yaml").write_text(json.dumps(config))
        argv = [program, "serve", str(data / "config.yaml")]
        process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        port = _port_told_by(process)
        # Nobody reads on otherwise, and it would stand still when the pipe is full.
        reader = threading.Thread(target=_drain, args=(process,))
        readers.append(reader)
        reader.start()
        return Running(port, data, scheme)

    yield run
    for process in processes:
        process.terminate()
        process.wait()
    for reader in readers:
        reader.join()
    for process in processes:
        assert process.stderr is not None
        process.stderr.close()


def _port_told_by(process: subprocess.Popen[str]) -> int:
    assert process.stderr is not None
    told = []
    for line in process.stderr:
        told.append(line)
        if found := re.search(r"listening on 127\.0\.0\.1:(\d+)", line):
            return int(found[1])
    raise AssertionError("".join(told))


def _drain(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    for _ in process.stderr:
        pass


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def other(tmp_path: Path) -> Store:
    return Store(tmp_path / "other")


@asynccontextmanager
async def spoken(
    *places: Running | Endpoint, settings: Settings = QUICK
) -> AsyncIterator[list[Registry]]:
    async with http.client(settings) as client:
        yield [
            Registry(client, settings, each if isinstance(each, Endpoint) else Endpoint(each.url))
            for each in places
        ]


async def brought(
    place: Running, image: Image, store: Store, *, settings: Settings = QUICK, chunk: int = 0
) -> bool:
    assert image.name is not None
    async with spoken(place, settings=settings) as (there,):
        return await push(there, image, store, image.name, chunk=chunk)


class Relay:
    """Passes on what a registry and its client say, and hangs up when enough was said."""

    def __init__(self, port: int, answers: Sequence[int], requests: Sequence[int]) -> None:
        """After how many bytes of answers, or of requests, each next connection is cut off."""
        self._port = port
        self._answers = list(answers)
        self._requests = list(requests)
        self._ends: list[asyncio.StreamWriter] = []
        self._serving: set[asyncio.Task[None]] = set()
        self.heard = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        self._ends += [writer, back]
        ways = (self._ask(reader, back), self._answer(there, writer))
        tasks = [asyncio.create_task(way) for way in ways]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for end in (writer, back):
            end.transport.abort()
        await asyncio.wait(tasks)

    async def end(self) -> None:
        for end in self._ends:
            end.transport.abort()
        if self._serving:
            await asyncio.wait(self._serving)

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for data in _until(reader, self._requests):
            self.heard += data
            writer.write(data)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for data in _until(reader, self._answers):
            writer.write(data)
            await writer.drain()


async def _until(reader: asyncio.StreamReader, limits: list[int]) -> AsyncIterator[bytes]:
    """What is said before it is too much for the next of the limits, which is then done with."""
    said = 0
    while data := await reader.read(65536):
        said += len(data)
        if limits and said > limits[0]:
            limits.pop(0)
            return
        yield data


@asynccontextmanager
async def relayed(
    place: Running, *, answers: Sequence[int] = (), requests: Sequence[int] = ()
) -> AsyncIterator[tuple[Relay, Endpoint]]:
    relay = Relay(place.port, answers, requests)
    async with await asyncio.start_server(relay.serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield relay, Endpoint(f"http://127.0.0.1:{port}")
        await relay.end()


def htpasswd(path: Path) -> dict[str, Any]:
    word = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    path.write_text(f"{USER}:{word}\n")
    return {"htpasswd": {"realm": "test", "path": str(path)}}


def certificate(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    """A certificate for this machine that has signed itself."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = dt.datetime.now(dt.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    return (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )


def pem(cert: x509.Certificate, path: Path) -> Path:
    path.write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    return path


class Issuer:
    """Gives tokens to who has the login, as the registry wants them."""

    def __init__(self, place: Path, *, asks_for_login: bool = True) -> None:
        self._asks = asks_for_login
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._cert = certificate(self._key)
        self.bundle = pem(self._cert, place / "issuer.pem")
        self.asked: list[list[str]] = []

    def answer(self, query: dict[str, list[str]], authorization: str) -> tuple[int, bytes]:
        self.asked.append(query.get("scope", []))
        wanted = Login(USER, PASSWORD).header() if self._asks else ""
        if authorization != wanted:
            return 401, b"{}"
        return 200, json.dumps({"token": self._token(query)}).encode()

    def _token(self, query: dict[str, list[str]]) -> str:
        access = [
            {"type": kind, "name": name, "actions": actions.split(",")}
            for kind, name, actions in (scope.split(":") for scope in query.get("scope", []))
        ]
        now = int(dt.datetime.now(dt.UTC).timestamp())
        claims = {"iss": "test", "sub": USER, "aud": query["service"][0], "access": access}
        times = {"exp": now + 600, "nbf": now - 600, "iat": now, "jti": "1"}
        der = self._cert.public_bytes(serialization.Encoding.DER)
        head = {"typ": "JWT", "alg": "ES256", "x5c": [base64.b64encode(der).decode()]}
        text = ".".join(_urlsafe(json.dumps(each).encode()) for each in (head, claims | times))
        numbers = decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{_urlsafe(b''.join(each.to_bytes(32, 'big') for each in numbers))}"


def _urlsafe(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Answer(NamedTuple):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


Asked = tuple[str, str, Mapping[str, str]]
"""A method, an address and the headers of a request."""


@contextmanager
def answering(answer: Callable[[str, str, Mapping[str, str]], Answer]) -> Iterator[Endpoint]:
    """A server that answers as it is told."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, body, headers = answer(self.command, self.path, dict(self.headers))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_POST = do_PUT = _answer  # noqa: N815 what it looks for

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Endpoint(f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def issuing(issuer: Issuer) -> Iterator[str]:
    """The address of an issuer of tokens."""

    def answer(method: str, path: str, headers: Mapping[str, str]) -> Answer:
        query = parse_qs(urlsplit(path).query)
        return Answer(*issuer.answer(query, headers.get("Authorization", "")))

    with answering(answer) as place:
        yield f"{place.url}/token"


@pytest.fixture
def full(tmp_path: Path) -> Store:
    """A store that takes nothing more: a file is where it keeps what arrives."""
    store = Store(tmp_path / "full")
    store.add(b"something")
    (store.root / "parts").rmdir()
    (store.root / "parts").write_text("")
    return store


def test_docker_hub_is_spoken_to_at_another_name() -> None:
    assert registry.endpoint("docker.io").url == "https://registry-1.docker.io"
    assert registry.endpoint("host:5000", encrypted=False).url == "http://host:5000"


@pytest.mark.parametrize(
    "url",
    ["", "registry.example.org", "ftp://host", "https://", "http://me:word@host", "http://a:b"],
)
async def test_what_is_no_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidInput, match="no address of a registry") as refused:
        async with spoken(Endpoint(url)):
            pass

    assert "word" not in str(refused.value)


async def test_what_was_pushed_is_pulled_with_the_same_digests(
    run_registry: Run, store: Store, other: Store
) -> None:
    there = run_registry()
    several = made_images.image(store, others=[made_images.notes(store)])
    one = made_images.sole(store)

    for image in (several, one):
        assert image.name is not None
        assert await brought(there, image, store)
        async with spoken(there) as sources:
            assert await pull(sources, image.name, other) == image

        assert made_images.everything(image, other) == made_images.everything(image, store)


async def test_what_is_there_already_is_not_pushed_again(run_registry: Run, store: Store) -> None:
    there = run_registry()
    image = made_images.image(store)

    assert await brought(there, image, store) is True
    assert await brought(there, image, store) is False


async def test_an_image_is_pulled_by_its_digest(
    run_registry: Run, store: Store, other: Store
) -> None:
    there, image = run_registry(), made_images.image(store)
    await brought(there, image, store)
    name = parse(f"example.org/team/app@{image.root.digest}")

    async with spoken(there) as sources:
        assert (await pull(sources, name, other)).root == image.root


async def test_only_the_wanted_architectures_are_pulled_and_the_index_tells_so(
    run_registry: Run, store: Store, other: Store
) -> None:
    there = run_registry()
    image = made_images.image(store, others=[made_images.notes(store)])
    await brought(there, image, store)

    async with spoken(there) as sources:
        found = await pull(sources, APP, other, ("arm64",))

    arm64 = manifests.index(image.root, store).manifests[1]
    assert manifests.index(found.root, other).manifests == (arm64,)
    assert manifests.origin(found.root, other) == image.root.digest
    assert len(other.blobs()) == 1 + 1 + 3  # index, manifest, configuration and two layers


async def test_an_index_of_which_all_is_wanted_keeps_its_digest(
    run_registry: Run, store: Store, other: Store
) -> None:
    there = run_registry()
    image = made_images.image(store, others=[made_images.notes(store)])
    await brought(there, image, store)

    async with spoken(there) as sources:
        assert (await pull(sources, APP, other, ("amd64", "arm64"))).root == image.root


async def test_a_trimmed_image_can_be_pushed(run_registry: Run, store: Store, other: Store) -> None:
    first, second = run_registry(), run_registry()
    await brought(first, made_images.image(store), store)
    async with spoken(first) as sources:
        trimmed = await pull(sources, APP, other, ("amd64",))

    assert await brought(second, trimmed, other)

    async with spoken(second) as sources:
        assert await pull(sources, APP, store) == trimmed


async def test_an_image_for_other_machines_is_refused_before_its_layers_come(
    run_registry: Run, store: Store, other: Store
) -> None:
    there = run_registry()
    several, one = made_images.image(store), made_images.sole(store)
    for image in (several, one):
        await brought(there, image, store)
    layer = manifests.manifest(one.root, store).layers[0]
    assert several.name is not None
    assert one.name is not None

    async with spoken(there) as sources:
        with pytest.raises(Refused, match="is not for s390x; it is for linux/amd64, linux/arm64"):
            await pull(sources, several.name, other, ("amd64", "s390x"))
        with pytest.raises(Refused, match="is not for arm64; it is for linux/amd64"):
            await pull(sources, one.name, other, ("arm64",))

    assert not other.has(manifests.sha256_of(layer.digest))


async def test_images_of_docker_are_pulled_and_pushed_as_well(
    run_registry: Run, store: Store, other: Store
) -> None:
    there = run_registry()
    document = manifests.manifest(made_images.sole(store).root, store)
    data = manifests.encoded(
        {
            "schemaVersion": 2,
            "mediaType": manifests.DOCKER_MANIFEST,
            "config": document.config,
            "layers": document.layers,
        }
    )
    inner = manifests.kept(data, manifests.DOCKER_MANIFEST, store)
    entry = json.loads(manifests.encoded(inner))
    entry["platform"] = {"os": "linux", "architecture": "amd64"}
    listed = manifests.encoded(
        {"schemaVersion": 2, "mediaType": manifests.DOCKER_INDEX, "manifests": [entry]}
    )
    image = Image(manifests.kept(listed, manifests.DOCKER_INDEX, store), APP)
    await brought(there, image, store)

    async with spoken(there) as sources:
        assert await pull(sources, APP, other, ("amd64",)) == image


@pytest.mark.parametrize("chunk", [0, 1_000_000, len(LARGE), 10**9])
async def test_a_blob_is_sent_at_once_or_in_pieces(
    run_registry: Run, store: Store, chunk: int
) -> None:
    there = run_registry()
    blob = manifests.kept(LARGE, manifests.OCI_LAYER, store)

    async with spoken(there) as (to,):
        await to.send("team/app", blob, store, chunk)

        assert await to.has("team/app", blob.digest)
    assert there.blob(blob.digest).read_bytes() == LARGE


async def test_a_blob_of_another_repository_is_not_sent_again(
    run_registry: Run, store: Store
) -> None:
    there = run_registry()
    blob = manifests.kept(LARGE, manifests.OCI_LAYER, store)

    async with relayed(there) as (relay, place), spoken(place) as (to,):
        await to.send("team/first", blob, store)
        sent = len(relay.heard)
        await to.send("team/second", blob, store)

        assert await to.has("team/second", blob.digest)
    assert sent > len(LARGE)
    assert len(relay.heard) - sent < 10_000
    assert b"mount=sha256" in relay.heard


async def test_a_pull_goes_on_where_it_was_interrupted(
    run_registry: Run, store: Store, other: Store
) -> None:
    there = run_registry()
    blob = manifests.kept(LARGE, manifests.OCI_LAYER, store)
    async with spoken(there) as (to,):
        await to.send("team/app", blob, store)

    async with relayed(there, answers=[3_000_000]) as (relay, place), spoken(place) as (source,):
        await source.fetch("team/app", blob, other)

    assert other.path(manifests.sha256_of(blob.digest)).read_bytes() == LARGE
    assert re.findall(rb"range: bytes=(\d+)-", relay.heard.lower()) == [b"2097152"]


async def test_a_later_pull_goes_on_where_an_earlier_one_gave_up(
    run_registry: Run, store: Store, other: Store
) -> None:
    there = run_registry()
    blob = manifests.kept(LARGE, manifests.OCI_LAYER, store)
    async with spoken(there) as (to,):
        await to.send("team/app", blob, store)
    cuts = [3_000_000, 1000, 1000, 1000, 1000]
    async with relayed(there, answers=cuts) as (_, place), spoken(place) as (source,):
        with pytest.raises(StepFailed):
            await source.fetch("team/app", blob, other)

    async with relayed(there) as (relay, place), spoken(place) as (source,):
        await source.fetch("team/app", blob, other)

    assert other.path(manifests.sha256_of(blob.digest)).read_bytes() == LARGE
    assert b"range: bytes=2097152-" in relay.heard.lower()


async def test_a_pull_that_is_cancelled_leaves_what_has_arrived(
    run_registry: Run, store: Store, other: Store
) -> None:
    there = run_registry()
    blob = manifests.kept(LARGE, manifests.OCI_LAYER, store)
    sha256 = manifests.sha256_of(blob.digest)
    async with spoken(there) as (to,):
        await to.send("team/app", blob, store)

    async with half_a_blob(LARGE) as place, spoken(place) as (source,):
        fetching = asyncio.create_task(source.fetch("team/app", blob, other))
        while other.part_size(sha256) < len(LARGE) // 2:  # noqa: ASYNC110 a file tells nobody that it grows
            await asyncio.sleep(0)
        fetching.cancel()
        await asyncio.wait([fetching])

    assert fetching.cancelled()
    assert other.part_size(sha256) == len(LARGE) // 2
    async with relayed(there) as (relay, place), spoken(place) as (source,):
        await source.fetch("team/app", blob, other)
    assert b"range: bytes=2097152-" in relay.heard.lower()


@asynccontextmanager
async def half_a_blob(data: bytes) -> AsyncIterator[Endpoint]:
    """A server that sends the first half of a blob and then nothing more."""
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data))
        writer.write(data[: len(data) // 2])
        await over.wait()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield Endpoint(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        over.set()


@pytest.mark.parametrize("chunk", [0, 1_500_000])
async def test_a_push_that_was_interrupted_is_tried_again(
    run_registry: Run, store: Store, chunk: int
) -> None:
    there = run_registry()
    blob = manifests.kept(LARGE, manifests.OCI_LAYER, store)

    async with relayed(there, requests=[3_000_000]) as (relay, place), spoken(place) as (to,):
        await to.send("team/app", blob, store, chunk)

    assert len(relay.heard) > len(LARGE) + 1_000_000
    assert there.blob(blob.digest).read_bytes() == LARGE


async def test_a_blob_that_the_registry_has_damaged_is_named_and_not_kept(
    run_registry: Run, store: Store, other: Store
) -> None:
    there, image = run_registry(), made_images.image(store)
    await brought(there, image, store)
    layer = manifests.contents([image.root], store).blobs[-1]
    there.blob(layer.digest).write_bytes(b"x" * layer.size)

    async with spoken(there) as sources:
        with pytest.raises(StepFailed, match=f"is damaged: found sha256:.*, want {layer.digest}"):
            await pull(sources, APP, other)

    assert not other.has(manifests.sha256_of(layer.digest))
    assert other.part_size(manifests.sha256_of(layer.digest)) == 0


async def test_one_failure_ends_what_has_not_begun(
    run_registry: Run, store: Store, other: Store
) -> None:
    there = run_registry()
    root = made_images.manifest(store, "amd64", [bytes([number]) for number in range(20)])
    await brought(there, Image(root, APP), store)
    blobs = manifests.contents([root], store).blobs
    for blob in blobs:
        there.blob(blob.digest).write_bytes(b"x" * blob.size)

    async with relayed(there) as (relay, place), spoken(place) as sources:
        with pytest.raises(StepFailed, match="is damaged"):
            await pull(sources, APP, other)

    assert relay.heard.count(b"GET /v2/team/app/blobs/") < len(blobs) == 21


async def test_a_part_that_is_wrong_is_thrown_away_and_the_blob_fetched_anew(
    run_registry: Run, store: Store, other: Store
) -> None:
    there = run_registry()
    blob = manifests.kept(LARGE, manifests.OCI_LAYER, store)
    async with spoken(there) as (source,):
        await source.send("team/app", blob, store)
        begun(blob, other, b"wrong")

        await source.fetch("team/app", blob, other)

    assert other.path(manifests.sha256_of(blob.digest)).read_bytes() == LARGE


async def test_what_is_damaged_in_the_store_is_not_pushed(run_registry: Run, store: Store) -> None:
    there, image = run_registry(), made_images.image(store)
    layer = manifests.contents([image.root], store).blobs[-1]
    path = store.path(manifests.sha256_of(layer.digest))
    path.chmod(0o644)
    path.write_bytes(b"x" * layer.size)

    with pytest.raises(Refused, match=f"{layer.digest} is damaged in the store"):
        await brought(there, image, store)

    async with spoken(there) as (source,):
        assert await source.digest(APP.repository, APP.tag) is None


async def test_a_server_that_sends_all_again_is_believed(store: Store, other: Store) -> None:
    blob = manifests.kept(LARGE, manifests.OCI_LAYER, store)
    begun(blob, other, LARGE[:1000])
    with answering(lambda method, path, headers: Answer(200, LARGE)) as place:
        async with spoken(place) as (source,):
            await source.fetch("team/app", blob, other)

    assert other.path(manifests.sha256_of(blob.digest)).read_bytes() == LARGE


async def test_a_server_that_can_not_go_on_is_asked_for_all(store: Store, other: Store) -> None:
    blob = manifests.kept(LARGE, manifests.OCI_LAYER, store)
    begun(blob, other, LARGE[:1000])

    def answer(method: str, path: str, headers: Mapping[str, str]) -> Answer:
        return Answer(416) if "Range" in headers else Answer(200, LARGE)

    with answering(answer) as place:
        async with spoken(place) as (source,):
            await source.fetch("team/app", blob, other)

    assert other.path(manifests.sha256_of(blob.digest)).read_bytes() == LARGE


@pytest.mark.parametrize("size", [10, len(LARGE) + 1])
async def test_a_blob_of_another_size_is_refused(store: Store, other: Store, size: int) -> None:
    found = manifests.kept(LARGE, manifests.OCI_LAYER, store)
    blob = Descriptor(found.media_type, found.digest, size)

    with answering(lambda method, path, headers: Answer(200, LARGE)) as place:
        async with spoken(place) as (source,):
            with pytest.raises(StepFailed, match=r"is damaged|ended .* after 4,194,304 of"):
                await source.fetch("team/app", blob, other)

    assert not other.has(manifests.sha256_of(blob.digest))


@pytest.mark.parametrize("wanted", [f"sha256:{'0' * 64}", f"sha512:{'0' * 128}"])
async def test_a_manifest_that_is_another_than_wanted_is_refused(other: Store, wanted: str) -> None:
    kind = {"Content-Type": manifests.OCI_MANIFEST}

    with answering(lambda method, path, headers: Answer(200, b"{}", kind)) as place:
        async with spoken(place) as sources:
            with pytest.raises(StepFailed, match=f"is damaged: found sha.*, want {wanted}"):
                await pull(sources, parse(f"example.org/app@{wanted}"), other)

    assert other.blobs() == []


async def test_a_manifest_without_an_end_is_refused(other: Store) -> None:
    kind, data = {"Content-Type": manifests.OCI_MANIFEST}, b" " * (manifests.LARGEST_DOCUMENT + 1)

    with answering(lambda method, path, headers: Answer(200, data, kind)) as place:
        async with spoken(place) as sources:
            with pytest.raises(Refused, match="larger than 4194304 bytes"):
                await pull(sources, APP, other)


async def test_a_registry_that_does_not_say_where_to_upload_is_refused(store: Store) -> None:
    blob = manifests.kept(LARGE, manifests.OCI_LAYER, store)
    answers = {"HEAD": Answer(404), "POST": Answer(202)}

    with answering(lambda method, path, headers: answers[method]) as place:
        async with spoken(place) as (to,):
            with pytest.raises(Refused, match="does not say where an upload goes on"):
                await to.send("team/app", blob, store)


async def test_who_keeps_the_blobs_of_a_registry_does_not_learn_its_token(
    store: Store, other: Store
) -> None:
    blob = manifests.kept(LARGE, manifests.OCI_LAYER, store)
    there: list[Asked] = []
    here: list[Asked] = []

    def depot(*asked: Any) -> Answer:
        there.append(asked)
        return Answer(201) if asked[0] == "PUT" else Answer(200, LARGE)

    with answering(depot) as elsewhere:

        def answer(*asked: Any) -> Answer:
            here.append(asked)
            method, path, headers = asked
            if path.startswith("/token"):
                return Answer(200, b'{"access_token": "of the test"}')
            if "Authorization" not in headers:
                realm = f'Bearer realm="http://{headers["Host"]}/token",service="test"'
                return Answer(401, b"", {"WWW-Authenticate": realm})
            leads = {"Location": f"{elsewhere.url}/place?upload=1"}
            return {"HEAD": Answer(404), "POST": Answer(202, b"", leads)}.get(
                method, Answer(307, b"", leads)
            )

        with answering(answer) as place:
            async with spoken(place) as (registry_,):
                await registry_.send("team/app", blob, store)
                await registry_.fetch("team/app", blob, other)

    assert [asked[0] for asked in there] == ["PUT", "GET"]
    assert f"/place?upload=1&digest={blob.digest.replace(':', '%3A')}" in there[0][1]
    assert not any("Authorization" in headers for _, _, headers in there)
    assert any(headers.get("Authorization") == "Bearer of the test" for _, _, headers in here)


def begun(blob: Descriptor, store: Store, data: bytes) -> None:
    """Leave a part of a blob in a store."""
    part = store.part_of(manifests.sha256_of(blob.digest))
    assert part is not None
    part.begin(Origin('"of the test"', blob.size))
    part.write(data)
    part.close()


async def test_two_pulls_of_one_image_at_once_fetch_each_blob_once(
    run_registry: Run, store: Store, other: Store
) -> None:
    there, image = run_registry(), made_images.image(store)
    await brought(there, image, store)

    async with relayed(there) as (relay, place), spoken(place, place) as (first, second):
        both = tuple(await asyncio.gather(pull([first], APP, other), pull([second], APP, other)))

    assert both == (image, image)
    blobs = re.findall(rb"GET /v2/team/app/blobs/(\S+)", relay.heard)
    assert sorted(blobs) == sorted(
        each.digest.encode() for each in manifests.contents([image.root], store).blobs
    )


async def test_a_mirror_comes_first_and_may_have_a_project_in_front(
    run_registry: Run, store: Store, other: Store
) -> None:
    mirror, image = run_registry(), made_images.image(store)
    async with spoken(Endpoint(mirror.url, "hub")) as (to,):
        await push(to, image, store, APP)

    async with spoken(mirror, Endpoint(mirror.url, "hub")) as (plain, project):
        assert await pull([project], APP, other) == image
        assert await plain.digest("hub/team/app", "1") == image.root.digest


async def test_where_a_mirror_fails_the_next_one_is_asked(
    run_registry: Run, store: Store, other: Store
) -> None:
    empty, damaged, good = run_registry(), run_registry(), run_registry()
    image = made_images.image(store)
    for each in (damaged, good):
        await brought(each, image, store)
    layer = manifests.contents([image.root], store).blobs[-1]
    damaged.blob(layer.digest).write_bytes(b"x" * layer.size)

    async with spoken(Endpoint("http://127.0.0.1:1"), empty, damaged, good) as sources:
        assert await pull(sources, APP, other) == image
        with pytest.raises(StepFailed) as failed:
            await pull(sources[:3], APP, Store(other.root.with_name("third")))

    lines = failed.value.message.splitlines()
    assert lines[0] == "nobody gives `example.org/team/app:1`:"
    assert "no answer from http://127.0.0.1:1/v2/team/app/manifests/1: " in lines[1]
    assert f"127.0.0.1:{empty.port} has no `team/app:1`" in lines[2]
    assert "is damaged: found" in lines[3]


async def test_a_store_that_takes_nothing_is_no_reason_to_ask_another_mirror(
    run_registry: Run, store: Store, full: Store
) -> None:
    there, image = run_registry(), made_images.image(store)
    await brought(there, image, store)

    async with spoken(there, there) as sources:
        with pytest.raises(StoreUnusable, match="a file is where a directory should be"):
            await pull(sources, APP, full)


async def test_an_image_that_is_not_there_is_told_with_what_the_registry_says(
    run_registry: Run, other: Store
) -> None:
    there = run_registry()

    async with spoken(there) as sources:
        await sources[0].ping()
        with pytest.raises(Refused, match=r"has no `team/app:1`: manifest unknown"):
            await pull(sources, APP, other)


async def test_with_a_login_what_is_guarded_is_pushed_and_pulled(
    tmp_path: Path, run_registry: Run, store: Store, other: Store
) -> None:
    there = run_registry(auth=htpasswd(tmp_path / "htpasswd"))
    settings = Settings(attempts=2, first_pause=0.001, logins=there.logins())
    image = made_images.image(store)

    assert await brought(there, image, store, settings=settings)

    async with spoken(there, settings=settings) as sources:
        await sources[0].ping()
        assert await pull(sources, APP, other) == image


async def test_without_a_login_or_with_a_wrong_one_the_reason_is_told_and_no_secret(
    tmp_path: Path, run_registry: Run, store: Store
) -> None:
    there = run_registry(auth=htpasswd(tmp_path / "htpasswd"))
    wrong = Settings(attempts=1, logins={there.url: Login(USER, "not the word")})

    async with spoken(there) as (without,):
        with pytest.raises(Refused, match="only to who has a login"):
            await without.ping()
    async with spoken(there, settings=wrong) as (mistaken,):
        with pytest.raises(Refused, match="does not accept the login of `somebody`") as refused:
            await mistaken.ping()

    assert "not the word" not in str(refused.value) + refused.value.hint


async def test_a_registry_that_wants_tokens_gets_one_for_each_repository(
    tmp_path: Path, run_registry: Run, store: Store, other: Store
) -> None:
    issuer, image = Issuer(tmp_path), made_images.image(store)
    with issuing(issuer) as realm:
        there = run_registry(auth=_tokens_of(issuer, realm))
        settings = Settings(attempts=1, logins=there.logins())

        assert await brought(there, image, store, settings=settings)
        async with spoken(there, settings=settings) as sources:
            await sources[0].ping()
            assert await pull(sources, APP, other) == image

    assert issuer.asked.count(["repository:team/app:pull,push"]) == 1
    assert issuer.asked.count(["repository:team/app:pull"]) == 2  # one by each client


async def test_with_tokens_a_blob_is_taken_from_another_repository_too(
    tmp_path: Path, run_registry: Run, store: Store
) -> None:
    issuer = Issuer(tmp_path)
    blob = manifests.kept(LARGE, manifests.OCI_LAYER, store)
    with issuing(issuer) as realm:
        there = run_registry(auth=_tokens_of(issuer, realm))
        settings = Settings(attempts=1, logins=there.logins())
        async with spoken(there, settings=settings) as (to,):
            for repository in ("team/first", "team/second"):
                await to.send(repository, blob, store)

    assert ["repository:team/second:pull,push", "repository:team/first:pull"] in issuer.asked
    uploads = there.data / "docker/registry/v2/repositories/team/second/_uploads"
    assert not uploads.exists()


async def test_without_a_login_a_token_for_everybody_is_asked_for(
    tmp_path: Path, run_registry: Run, store: Store, other: Store
) -> None:
    issuer, image = Issuer(tmp_path, asks_for_login=False), made_images.image(store)
    with issuing(issuer) as realm:
        there = run_registry(auth=_tokens_of(issuer, realm))

        assert await brought(there, image, store)
        async with spoken(there) as sources:
            assert await pull(sources, APP, other) == image


async def test_who_gets_no_token_is_told_why(
    tmp_path: Path, run_registry: Run, other: Store
) -> None:
    issuer = Issuer(tmp_path)
    with issuing(issuer) as realm:
        there = run_registry(auth=_tokens_of(issuer, realm))
        async with spoken(there) as sources:
            with pytest.raises(Refused, match="only to who has a login"):
                await pull(sources, APP, other)


def _tokens_of(issuer: Issuer, realm: str) -> dict[str, Any]:
    bundle = str(issuer.bundle)
    return {
        "token": {"realm": realm, "service": "test", "issuer": "test", "rootcertbundle": bundle}
    }


@pytest.fixture
def tls(tmp_path: Path) -> dict[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    path = pem(certificate(key), tmp_path / "ca.pem")
    return {"certificate": str(path), "key": str(tmp_path / "key.pem")}


async def test_an_encrypted_registry_is_trusted_by_its_certificate(
    tls: dict[str, str], run_registry: Run, store: Store, other: Store
) -> None:
    there = run_registry("https", http={"tls": tls})
    settings = Settings(attempts=1, ca_file=Path(tls["certificate"]))
    image = made_images.image(store)

    assert await brought(there, image, store, settings=settings)
    async with spoken(there, settings=settings) as sources:
        assert await pull(sources, APP, other) == image

    async with spoken(there) as (stranger,):
        with pytest.raises(KubexmError, match="its certificate is not trusted"):
            await stranger.ping()


async def test_the_login_of_an_encrypted_registry_is_not_told_in_the_clear(
    tmp_path: Path, tls: dict[str, str], run_registry: Run, other: Store
) -> None:
    issuer = Issuer(tmp_path)
    with issuing(issuer) as realm:
        there = run_registry("https", http={"tls": tls}, auth=_tokens_of(issuer, realm))
        ca_file = Path(tls["certificate"])
        settings = Settings(attempts=1, ca_file=ca_file, logins=there.logins())
        async with spoken(there, settings=settings) as sources:
            with pytest.raises(Refused, match="want an `https` address"):
                await pull(sources, APP, other)

    assert issuer.asked == []


async def test_a_pull_into_the_store_can_be_recorded(
    run_registry: Run, store: Store, other: Store
) -> None:
    there, image = run_registry(), made_images.image(store)
    await brought(there, image, store)
    async with spoken(there) as sources:
        images.record(await pull(sources, APP, other), other)

    other.prune()

    assert images.find(APP, other) == image
    assert made_images.everything(image, other) == made_images.everything(image, store)
