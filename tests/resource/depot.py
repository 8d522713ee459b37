"""A server of the tests that has what a cluster is made of: files, charts and images.

It runs in a thread, so that whole commands can be given to it, and notes what it is asked.
"""

import gzip
import io
import re
import tarfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from tests.resource import made_images

from kubexm.resource import images, lock, manifests
from kubexm.resource.catalog import Catalog
from kubexm.resource.images import Image
from kubexm.resource.lock import Locked
from kubexm.resource.materials import BillOfMaterials, Binary
from kubexm.resource.store import Store

_RANGE = re.compile(r"bytes=(\d+)-")


class Depot:
    """What it has by path, what it was asked, and how it is told to fail."""

    def __init__(self, directory: Path) -> None:
        self.url = ""
        self.store = Store(directory)
        """Where the bytes of its images lie."""
        self.asked: list[str] = []
        """The paths of all requests."""
        self.ranges: list[str] = []
        self.refused: set[str] = set()
        """Paths that it says it does not have."""
        self.cut: dict[str, int] = {}
        """So many bytes of these are sent the first time, and then nothing."""
        self.held: dict[str, int] = {}
        """After so many bytes of these nothing more is said until `released` is set."""
        self.holding = threading.Event()
        self.released = threading.Event()
        self._files: dict[str, tuple[bytes, str]] = {}

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    def put(self, path: str, data: bytes, kind: str = "application/octet-stream") -> str:
        """Have a file; its sha256."""
        self._files[path] = data, kind
        return sha256(data).hexdigest()

    def find(self, path: str) -> tuple[bytes, str] | None:
        return None if path in self.refused else self._files.get(path)

    def add(self, name: str, architectures: Sequence[str] = made_images.BOTH) -> Image:
        """Have an image, as a registry that mirrors all others has it."""
        image = made_images.image(self.store, name, architectures, text=name.encode())
        reference, root = images.parse(name), image.root
        inside = manifests.contents([root], self.store)
        folder = f"/v2/{reference.repository}"
        for each in (*inside.documents, *inside.blobs):
            data = self.store.path(manifests.sha256_of(each.digest)).read_bytes()
            place = "manifests" if each in inside.documents else "blobs"
            self.put(f"{folder}/{place}/{each.digest}", data, each.media_type)
        data = manifests.read(root, self.store)
        self.put(f"{folder}/manifests/{reference.wanted}", data, root.media_type)
        return image

    def stock(self, found: BillOfMaterials) -> BillOfMaterials:
        """Have all files and images of a bill, at the paths that their projects have them."""
        for file in found.binaries:
            self.put(path_of(file), content(file))
        for image in found.images:
            self.add(image.name)
        return found


def few(found: BillOfMaterials) -> BillOfMaterials:
    """Some of a bill, where all of it would bring nothing new."""
    files = [file for file in found.binaries if file.component in ("kubernetes", "runc")]
    pulled = [image for image in found.images if image.component in ("coredns", "pause")]
    return replace(found, binaries=tuple(files), images=tuple(pulled))


def content(file: Binary) -> bytes:
    """What the depot has of a file: large enough to be cut off, and like nothing else."""
    return path_of(file).encode() * 1000


def chart(name: str, version: str = "1.0.0") -> bytes:
    """A chart, packed, always the same bytes."""
    packed, text = io.BytesIO(), f"apiVersion: v2\nname: {name}\nversion: {version}\n".encode()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file,
        tarfile.open(fileobj=file, mode="w") as tar,
    ):
        header = tarfile.TarInfo(f"{name}/Chart.yaml")
        header.size = len(text)
        tar.addfile(header, io.BytesIO(text))
    return packed.getvalue()


def path_of(file: Binary) -> str:
    """Where the depot has a file."""
    return _path(file.urls[-1])


def overlay(depot: Depot, catalog: Catalog, found: BillOfMaterials, path: Path) -> Path:
    """A catalog by which all files of a bill come from the depot, with the sums they have there."""
    components = catalog.entries.components
    places = {
        (file.component, file.name): components[file.component].artifacts[file.name].urls[-1]
        for file in found.binaries
    }
    text = "".join(
        f'[components.{component}.artifacts.{name}]\nurls = ["{depot.url}{_path(url)}"]\n'
        for (component, name), url in places.items()
    )
    path.write_text(text + lock.text(_sum(file) for file in found.binaries))
    return path


def _sum(file: Binary) -> Locked:
    digest = sha256(content(file)).hexdigest()
    return Locked(file.component, file.version, file.name, file.arch, digest)


def cluster(depot: Depot, path: Path, version: str = "v1.36.3", more: str = "") -> Path:
    """A cluster file whose images come from the depot."""
    mirrored = ("docker.io", "ghcr.io", "quay.io", "registry.k8s.io")
    registries = "".join(f'      {name}: {{mirrors: ["{depot.url}"]}}\n' for name in mirrored)
    path.write_text(
        "apiVersion: kubexm.io/v1alpha1\nkind: Cluster\nmetadata: {name: demo}\nspec:\n"
        "  hosts:\n  - {name: node1, address: 10.0.0.1}\n"
        f"  kubernetes: {{version: {version}}}\n"
        f"  containerRuntime:\n    registries:\n{registries}{more}"
    )
    return path


@contextmanager
def opened(directory: Path) -> Iterator[Depot]:
    """A depot that answers as long as this lasts."""
    depot = Depot(directory)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(self, depot)

        def do_HEAD(self) -> None:
            _answer(self, depot)

        def log_message(self, *_args: Any) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    depot.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield depot
    finally:
        depot.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(request: BaseHTTPRequestHandler, depot: Depot) -> None:
    path = request.path
    depot.asked.append(path)
    found = depot.find(path)
    if found is None:
        request.send_error(404)
        return
    data, kind = found
    start = _start(request, data)
    if start:
        depot.ranges.append(path)
    request.send_response(206 if start else 200)
    request.send_header("Content-Type", kind)
    request.send_header("ETag", f'"{sha256(data).hexdigest()}"')
    request.send_header("Content-Length", str(len(data) - start))
    if start:
        request.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
    request.end_headers()
    if request.command == "GET":
        rest = data[start:]
        request.wfile.write(rest[: depot.held.get(path, depot.cut.pop(path, len(rest)))])
    if path in depot.held:
        request.wfile.flush()
        depot.holding.set()
        depot.released.wait(60)


def _start(request: BaseHTTPRequestHandler, data: bytes) -> int:
    wanted = _RANGE.fullmatch(request.headers.get("Range", ""))
    return int(wanted[1]) if wanted and int(wanted[1]) < len(data) else 0


def _path(url: str) -> str:
    """Where a mirror of everything has what lies at an address."""
    return f"/{url.removeprefix('https://')}"
