"""A registry on loopback with one small image, for those who say who they are."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

Challenge = Literal["Basic", "Bearer"]
USER, PASSWORD = "robot$pull", 'the "word" \\ of it'
NAME = "team/app:1"
_BASIC = f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"
_TOKEN = "a-token"
_OCI = "application/vnd.oci.image"


class Guarded:
    """Where it is, and what it was asked."""

    def __init__(self, port: int) -> None:
        self.host = f"127.0.0.1:{port}"
        self.url = f"http://{self.host}"
        self.asked: list[str] = []
        """The status, method and path of each request."""


@contextmanager
def guarded(challenge: Challenge) -> Iterator[Guarded]:
    """A registry that asks for a login itself, or has it asked for by what issues its tokens."""
    found: list[Guarded] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, given = urlsplit(self.path).path, self.headers.get("Authorization", "")
            if path == "/token":
                self._answer(*_issued(known=given == _BASIC))
            elif given != (_BASIC if challenge == "Basic" else f"Bearer {_TOKEN}"):
                self._answer(401, b"{}", {"WWW-Authenticate": _wanted(challenge, found[0])})
            else:
                self._answer(*_given(path))

        do_HEAD = do_GET  # noqa: N815 what it looks for

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(sent).items()}
            login = (form.get("username"), form.get("password"))
            self._answer(*_issued(known=login == (USER, PASSWORD)))

        def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            found[0].asked.append(f"{status} {self.command} {urlsplit(self.path).path}")
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.append(Guarded(server.server_port))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield found[0]
        finally:
            server.shutdown()
            thread.join()


def _wanted(challenge: Challenge, server: Guarded) -> str:
    if challenge == "Basic":
        return 'Basic realm="test"'
    return f'Bearer realm="{server.url}/token",service="test",scope="repository:team/app:pull"'


def _issued(*, known: bool) -> tuple[int, bytes, dict[str, str]]:
    # Those who ask by a form want it under one name, all others under the other.
    token = json.dumps({"token": _TOKEN, "access_token": _TOKEN})
    return (200, token.encode(), {}) if known else (401, b"{}", {})


def _given(path: str) -> tuple[int, bytes, dict[str, str]]:
    kind, wanted = path.split("/")[-2:]
    data = _MANIFEST if wanted == NAME.partition(":")[2] else _CONTENT.get(wanted)
    if data is None:
        return 404, b"", {}
    what = f"{_OCI}.manifest.v1+json" if kind == "manifests" else "application/octet-stream"
    return 200, data, {"Content-Type": what, "Docker-Content-Digest": _digest(data)}


def _digest(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


def _described(kind: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": f"{_OCI}.{kind}", "digest": _digest(data), "size": len(data)}


def _layer() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("content"))
    return file.getvalue()


_LAYER = gzip.compress(_layer(), mtime=0)
_CONFIG = json.dumps(
    {
        "os": "linux",
        "architecture": "amd64",
        "rootfs": {"type": "layers", "diff_ids": [_digest(_layer())]},
    }
).encode()
_MANIFEST = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.manifest.v1+json",
        "config": _described("config.v1+json", _CONFIG),
        "layers": [_described("layer.v1.tar+gzip", _LAYER)],
    }
).encode()
_CONTENT = {_digest(data): data for data in (_LAYER, _CONFIG, _MANIFEST)}
DIGEST = _digest(_MANIFEST)
