"""Objects of S3-compatible stores: their addresses, and the signature (version 4) of a request."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from kubexm.common.secrets import Discreet
from kubexm.resource.sources import BucketSource

_ALGORITHM = "AWS4-HMAC-SHA256"
_NOTHING = sha256(b"").hexdigest()
_PORTS = {"http": ":80", "https": ":443"}


class Access(Discreet, frozen=True, kw_only=True):
    """Where a bucket is and who we are there; without a key nothing is signed."""

    hidden = frozenset({"secret_key", "session_token"})

    endpoint: str = ""
    """Such as `https://minio.example.org:9000`; empty stands for AWS."""
    region: str = "us-east-1"
    access_key: str = ""
    secret_key: str = ""
    session_token: str = ""
    fault: str = ""
    """What is wrong with it, for who needs it."""


def address(access: Access, source: BucketSource) -> str:
    """The address of an object, with the bucket in its path: that works with any host name."""
    endpoint = access.endpoint or f"https://s3.{access.region}.amazonaws.com"
    return f"{endpoint.rstrip('/')}/{source.bucket}/{_quoted(source.key, safe='/')}"


def signed(
    method: str,
    url: str,
    headers: Mapping[str, str],
    access: Access,
    when: datetime,
    payload: str = _NOTHING,
) -> dict[str, str]:
    """The headers of a request with those that prove who sends it; `payload`: its sha256."""
    if not access.access_key:
        return dict(headers)
    time = when.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    all_headers = {**headers, "x-amz-content-sha256": payload, "x-amz-date": time}
    if access.session_token:
        all_headers["x-amz-security-token"] = access.session_token
    canonical = {name.lower(): " ".join(value.split()) for name, value in all_headers.items()}
    canonical["host"] = _host(url)
    names = ";".join(sorted(canonical))
    scope = f"{time[:8]}/{access.region}/s3/aws4_request"
    request = _canonical(method, url, canonical, payload)
    text = "\n".join((_ALGORITHM, time, scope, sha256(request.encode()).hexdigest()))
    signature = hmac.new(_key(access, time[:8]), text.encode(), sha256).hexdigest()
    proof = f"Credential={access.access_key}/{scope},SignedHeaders={names},Signature={signature}"
    return {**all_headers, "Authorization": f"{_ALGORITHM} {proof}"}


def _canonical(method: str, url: str, headers: Mapping[str, str], payload: str) -> str:
    """The request as both sides write it down before it is signed."""
    parts = urlsplit(url)
    query = sorted(
        (_quoted(name), _quoted(value))
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    )
    lines = [
        method,
        _quoted(unquote(parts.path), safe="/") or "/",
        "&".join(f"{name}={value}" for name, value in query),
        *(f"{name}:{headers[name]}" for name in sorted(headers)),
        "",
        ";".join(sorted(headers)),
        payload,
    ]
    return "\n".join(lines)


def _key(access: Access, day: str) -> bytes:
    key = f"AWS4{access.secret_key}".encode()
    for word in (day, access.region, "s3", "aws4_request"):
        key = hmac.new(key, word.encode(), sha256).digest()
    return key


def _host(url: str) -> str:
    """What the client sends as `Host`: with a port only where it is not the usual one."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2].lower().removesuffix(_PORTS.get(parts.scheme, ""))


def _quoted(text: str, safe: str = "") -> str:
    return quote(text, safe=safe)
