"""Load balancers, as they are configured, lead to the API servers that are ready."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.templates import programs

from kubexm.templates import render
from kubexm.templates.contexts.balancer import Backend, HaproxyConfig, NginxConfig

LONG = 15.0


class ApiServer:
    """An API server that says its name, and whether it is ready."""

    def __init__(self, name: str, certificate: Path) -> None:
        self.ready = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(name))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.backend = Backend(name=name, address=f"127.0.0.1:{self._server.server_port}")
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self, name: str) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_well = api.ready or self.path != "/readyz"
                self.send_response(200 if is_well else 500)
                self.end_headers()
                self.wfile.write(name.encode())

            def log_message(self, *args: object) -> None:
                pass

        return Handler


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[ApiServer, ApiServer]]:
    file = tmp_path / "server.pem"
    request = ["openssl", "req", "-x509", "-nodes", "-newkey", "rsa:2048", "-subj", "/CN=api"]
    made = [*request, "-keyout", str(file), "-out", str(tmp_path / "crt.pem")]
    subprocess.run(made, check=True, capture_output=True)
    file.write_text(file.read_text() + (tmp_path / "crt.pem").read_text())
    one, two = ApiServer("one", file), ApiServer("two", file)
    yield one, two
    one.close()
    two.close()


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_haproxy_leads_to_those_that_are_ready(
    tmp_path: Path, servers: tuple[ApiServer, ApiServer]
) -> None:
    one, two = servers
    port, health = free_port(), free_port()
    config = HaproxyConfig(
        binds=(f"127.0.0.1:{port}",),
        backends=(one.backend, two.backend),
        health=f"127.0.0.1:{health}",
        max_connections=100,
    )
    file = tmp_path / "haproxy.cfg"
    file.write_text(render.render("haproxy/config", config.data()))

    with running("haproxy", "-db", "-f", str(file)):
        eventually(lambda: {asked(port) for _ in range(4)} == {"one", "two"})
        assert status(health) == 200

        one.ready = False
        eventually(lambda: {asked(port) for _ in range(4)} == {"two"})
        assert status(health) == 200

        two.ready = False
        eventually(lambda: status(health) == 503)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_haproxy_that_is_told_so_serves_both_families(
    tmp_path: Path, servers: tuple[ApiServer, ApiServer]
) -> None:
    one, two = servers
    port = free_port()
    config = HaproxyConfig(
        binds=(f"[::]:{port} v4v6",),
        backends=(one.backend, two.backend),
        health=f"127.0.0.1:{free_port()}",
        max_connections=100,
    )
    file = tmp_path / "haproxy.cfg"
    file.write_text(render.render("haproxy/config", config.data()))

    checked = programs.run("haproxy", "-c", "-f", file)
    with running("haproxy", "-db", "-f", str(file)):
        eventually(lambda: asked(port) != "")
        eventually(lambda: asked(port, "::1") != "")

    assert checked.returncode == 0, checked.stderr


def test_nginx_leads_to_those_that_answer(
    tmp_path: Path, servers: tuple[ApiServer, ApiServer]
) -> None:
    one, two = servers
    port = free_port()
    config = NginxConfig(binds=(f"127.0.0.1:{port}",), backends=(one.backend, two.backend))
    file = tmp_path / "nginx.conf"
    text = render.render("nginx/config", config.data())
    file.write_text(text.replace("/tmp/nginx.pid", f"{tmp_path}/nginx.pid"))
    module = programs.module("ngx_stream_module")

    with running("nginx", "-e", "stderr", "-p", str(tmp_path), "-c", str(file), *module):
        eventually(lambda: {asked(port) for _ in range(4)} == {"one", "two"})

        one.close()

        assert {asked(port) for _ in range(4)} == {"two"}


@contextmanager
def running(name: str, *args: str) -> Iterator[None]:
    with programs.started(name, *args) as process:
        try:
            yield
        finally:
            process.terminate()


def asked(port: int, address: str = "127.0.0.1") -> str:
    """Who answers by the load balancer; nobody if it is not there yet."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = HTTPSConnection(address, port, timeout=5, context=context)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read().decode()
    except (OSError, HTTPException):
        return ""
    finally:
        connection.close()


def status(port: int) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status
    finally:
        connection.close()


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
