"""HTTP as kubexm speaks it: by which proxy, whom it trusts, who it is, and when it tries again."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import random
import ssl
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.request import getproxies_environment

import httpx

from kubexm.common.secrets import Discreet
from kubexm.errors import InvalidInput

MAX_REDIRECTS = 10
_LATER = frozenset({408, 429, 500, 502, 503, 504})
"""Answers that may be others in a moment."""
_REPEATABLE = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PUT"})
_IN_THE_CLEAR = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})
"""What OpenSSL says of an answer that is none of TLS."""
_BROKEN = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.ReadError,
    httpx.ReadTimeout,
    httpx.WriteError,
    httpx.WriteTimeout,
    httpx.RemoteProtocolError,
)
"""What happens to connections and may not happen to the next one."""
_ENCRYPTED = "https"
_PROXY = "name a proxy for HTTP, such as `http://proxy.example.org:3128`"
_PORTS = {"http": 80, _ENCRYPTED: 443}


class Login(Discreet, frozen=True):
    """Who we are to one server: a token, or a user with a password."""

    hidden = frozenset({"password", "token"})

    user: str = ""
    password: str = ""
    token: str = ""

    def header(self) -> str:
        """The value of `Authorization`."""
        if self.token:
            return f"Bearer {self.token}"
        return f"Basic {b64encode(f'{self.user}:{self.password}'.encode()).decode()}"


class Settings(Discreet, frozen=True, kw_only=True):
    """How servers are reached; secrets are values here, and are shown nowhere."""

    # The address of a proxy may hold a password.
    hidden = frozenset({"proxy", "logins"})

    proxy: str | None = None
    """The proxy for all; None follows the environment, an empty text uses none."""
    no_proxy: tuple[str, ...] = ()
    """Names, domains, addresses and networks that are reached without, beside the environment's."""
    ca_file: Path | None = None
    """Certificates that are trusted beside those of the system."""
    logins: Mapping[str, Login] = {}
    """By `host` or `host:port`, sent encrypted only; by `http://host:port`, in the clear."""
    connecting: float = 15
    """Seconds until a server has to take a connection."""
    silence: float = 60
    """Seconds that a server may say nothing; how long all takes is not limited."""
    attempts: int = 4
    """How often a request is sent that is worth another try."""
    first_pause: float = 0.5
    """Seconds before the second attempt; before each further one twice as many."""
    longest_pause: float = 60
    """Who asks for more patience than this is given up."""


def client(settings: Settings) -> httpx.AsyncClient:
    """An open client, to be used in `async with`.

    A request that can be repeated is sent again when the connection breaks before the answer, or
    when the answer is a 429 or a 5xx: what comes back is the last one. Redirects are followed. A
    login goes to its own server only; a request with an `Authorization` of its own keeps that.
    """
    return httpx.AsyncClient(
        transport=_Transport(settings),
        timeout=httpx.Timeout(settings.silence, connect=settings.connecting, pool=None),
        headers={"User-Agent": "kubexm"},
        follow_redirects=True,
        max_redirects=MAX_REDIRECTS,
        trust_env=False,
    )


def login_for(settings: Settings, url: httpx.URL | str) -> Login | None:
    """The login for the server of this address; None where it would not be encrypted."""
    url = httpx.URL(url)
    places = [f"{url.host}:{url.port or _PORTS.get(url.scheme)}"]
    if url.port in (None, _PORTS.get(url.scheme)):
        places.append(url.host)
    before = "" if url.scheme == _ENCRYPTED else f"{url.scheme}://"
    found = (settings.logins.get(f"{before}{place}") for place in places)
    return next((login for login in found if login is not None), None)


def proxy_for(settings: Settings, url: httpx.URL | str) -> str | None:
    """The proxy on the way to this address, if there is one."""
    url = httpx.URL(url)
    environment = getproxies_environment()
    without = (*settings.no_proxy, *environment.get("no", "").split(","))
    if settings.proxy is None:
        proxy = environment.get(url.scheme) or environment.get("all")
    else:
        proxy = settings.proxy
    return proxy if proxy and not _goes_without(url, without) else None


def shown(url: httpx.URL | str) -> str:
    """An address as it may stand in a message: who asks and what is signed is left out."""
    url = httpx.URL(url)
    query = "?…" if url.query else ""
    return f"{url.scheme}://{url.netloc.decode()}{url.path}{query}"


def reason(error: httpx.HTTPError, settings: Settings) -> str:
    """Why there was no answer, in words, and by which proxy."""
    proxy = proxy_for(settings, error.request.url)
    way = "" if proxy is None else f" (by the proxy {shown(_proxy(proxy).url)})"
    return f"{_reason(error, settings)}{way}"


def speaks_no_tls(error: BaseException) -> bool:
    """Whether something went wrong because a server speaks in the clear."""
    found = (cause for cause in _causes(error) if isinstance(cause, ssl.SSLError))
    return any(cause.reason in _IN_THE_CLEAR for cause in found)


class _Transport(httpx.AsyncBaseTransport):
    """Sends requests by the right way, as the right user, and again when that is worth it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._tls = _trust(settings.ca_file)
        self._ways: dict[str | None, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        way, request = self._way(request.url), self._identified(request)
        for attempt in range(self._settings.attempts - 1 if _can_be_repeated(request) else 0):
            pause = pause_after(attempt, self._settings)
            try:
                response = await way.handle_async_request(request)
            except _BROKEN as error:
                if _untrusted(error) is not None:
                    raise
            else:
                pause = max(pause, asked_patience(response))
                if response.status_code not in _LATER or pause > self._settings.longest_pause:
                    return response
                await response.aclose()
            await asyncio.sleep(pause)
        return await way.handle_async_request(request)

    async def aclose(self) -> None:
        for way in self._ways.values():
            await way.aclose()

    def _way(self, url: httpx.URL) -> httpx.AsyncHTTPTransport:
        proxy = proxy_for(self._settings, url)
        if proxy not in self._ways:
            self._ways[proxy] = httpx.AsyncHTTPTransport(
                verify=self._tls, proxy=None if proxy is None else _proxy(proxy, self._tls)
            )
        return self._ways[proxy]

    def _identified(self, request: httpx.Request) -> httpx.Request:
        login = login_for(self._settings, request.url)
        if login is None or "Authorization" in request.headers:
            return request
        # A copy: of the request itself a redirect to somebody else is made.
        return httpx.Request(
            request.method,
            request.url,
            headers={**request.headers, "Authorization": login.header()},
            stream=request.stream,
            extensions=request.extensions,
        )


def pause_after(attempt: int, settings: Settings) -> float:
    """Seconds to wait after the attempt of this number, from zero on; never twice the same."""
    return min(settings.first_pause * 2.0**attempt, settings.longest_pause) * random.uniform(0.5, 1)


def asked_patience(response: httpx.Response) -> float:
    """Seconds that `Retry-After` asks for; none if it does not."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        until = parsedate_to_datetime(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return 0
    return max(0, (until - datetime.now(UTC)).total_seconds())


def _can_be_repeated(request: httpx.Request) -> bool:
    """Whether it does the same once more; a body that is streamed is gone after the first time."""
    return request.method in _REPEATABLE and isinstance(request.stream, httpx.ByteStream)


def _trust(ca_file: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file is None:
        return context
    hint = "name a file with certificates in PEM"
    try:
        context.load_verify_locations(ca_file)
    except ssl.SSLError as error:
        raise InvalidInput(
            "there is no certificate in it", where=str(ca_file), hint=hint
        ) from error
    except OSError as error:
        message = f"can't read the trusted certificates: {error.strerror}"
        raise InvalidInput(message, where=str(ca_file), hint=hint) from error
    return context


def _proxy(text: str, tls: ssl.SSLContext | None = None) -> httpx.Proxy:
    try:
        # The environment often has `proxy:3128` alone.
        url = httpx.URL(text if "://" in text else f"http://{text}")
    except httpx.InvalidURL as error:
        raise InvalidInput("the address of the proxy can't be read", hint=_PROXY) from error
    if url.scheme not in _PORTS:
        message = f"the proxy is `{url.scheme}://…`, want `http://` or `https://`"
        raise InvalidInput(message, hint=_PROXY)
    return httpx.Proxy(url, ssl_context=tls if url.scheme == _ENCRYPTED else None)


def _goes_without(url: httpx.URL, places: tuple[str, ...]) -> bool:
    port = url.port or _PORTS.get(url.scheme)
    if url.host == "localhost" or _lies_in(url.host, "127.0.0.0/8") or _lies_in(url.host, "::1"):
        return True  # a proxy would look on its own machine
    return any(_matches(url.host, port, place.strip().lower()) for place in places)


def _matches(host: str, port: int | None, place: str) -> bool:
    name, colon, wanted = place.rpartition(":")
    if colon and wanted.isdecimal() and (name.endswith("]") or ":" not in name):
        return port == int(wanted) and _matches(host, port, name)
    name = place.strip("[]").removeprefix("*").lstrip(".")
    if place == "*" or _lies_in(host, name):
        return True
    return bool(name) and f".{host}".endswith(f".{name}")


def _lies_in(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _reason(error: httpx.HTTPError, settings: Settings) -> str:
    # The texts of the library may name what is secret.
    match error:
        case httpx.ConnectTimeout():
            return f"no connection within {settings.connecting:g} s"
        case httpx.TimeoutException():
            return f"nothing was heard for {settings.silence:g} s"
        case httpx.TooManyRedirects():
            return f"it redirects more than {MAX_REDIRECTS} times"
        case httpx.UnsupportedProtocol():
            return "it redirects to what is no web address"
        case httpx.ProxyError():
            return f"the proxy refused: {error}"
    return _cause(error)


def _cause(error: httpx.HTTPError) -> str:
    if (untrusted := _untrusted(error)) is not None:
        return f"its certificate is not trusted: {untrusted.verify_message}"
    if speaks_no_tls(error):
        return "it does not speak TLS"
    if (refusal := _of_the_system(error)) is not None:
        return _said(refusal)
    return "the connection broke" if isinstance(error, _BROKEN) else type(error).__name__


def _untrusted(error: BaseException) -> ssl.SSLCertVerificationError | None:
    found = (cause for cause in _causes(error) if isinstance(cause, ssl.SSLCertVerificationError))
    return next(found, None)


def _of_the_system(error: BaseException) -> OSError | None:
    """What the system said: the first that is more than words of a library."""
    found = (cause for cause in _causes(error) if isinstance(cause, OSError) and cause.strerror)
    return next(found, None)


def _said(error: OSError) -> str:
    # asyncio puts its own words there, and numbers of names and of TLS are none of the system.
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno).lower()
    return str(error.strerror).lower()


def _causes(error: BaseException) -> list[BaseException]:
    """An error and those from which it came; of several at once, the first."""
    causes: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and len(causes) < 20:
        causes.append(following)
        inner = following.exceptions[0] if isinstance(following, BaseExceptionGroup) else None
        following = inner or following.__cause__ or following.__context__
    return causes
