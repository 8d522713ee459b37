"""How the API server encrypts what it keeps in etcd: its configuration, as data and as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from kubexm.common import covering
from kubexm.common.secrets import Discreet
from kubexm.document import source
from kubexm.errors import InvalidFile, InvalidInput
from kubexm.pki import kubeconfig

Provider = Literal["secretbox", "aescbc", "aesgcm"]
"""Ways to encrypt with a key that lies on the host; all of them take one of as many bytes."""
KEY_BYTES = 32
_IDENTITY: dict[str, Any] = {"identity": {}}
_KEY_NAME = "key1"
_VERSION = "apiserver.config.k8s.io/v1"
_KIND = "EncryptionConfiguration"


class Encryption(Discreet, frozen=True):
    """What a configuration says."""

    hidden: ClassVar[frozenset[str]] = frozenset({"key", "providers"})

    resources: tuple[str, ...] = ()
    """What is encrypted."""
    provider: str = ""
    """How it is encrypted that is written from now on."""
    key: str = ""
    """By which key, in base64; empty if there is none."""
    providers: tuple[dict[str, Any], ...] = ()
    """All ways, the first for what is written, the others for what was written before."""


def read(text: bytes) -> Encryption:
    """What a configuration says; `InvalidInput` if it is none that could be changed safely."""
    try:
        data = source.parse(text).data
        (group,) = data["resources"]
        providers = tuple(dict(one) for one in group["providers"])
        name, settings = next(iter(providers[0].items()))
        found = (settings or {}).get("keys") or [{}]
        return Encryption(tuple(group["resources"]), name, found[0].get("secret", ""), providers)
    except (
        InvalidFile,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        StopIteration,
        IndexError,
    ):
        # What stands in it is not repeated: there is a key in it.
        raise InvalidInput(
            "this is no encryption configuration with one group of resources",
            hint="bring it into the form that kubexm writes, or change it by hand",
        ) from None


def text(
    provider: Provider, resources: Sequence[str], key: str, before: Encryption | None = None
) -> str:
    """A configuration that encrypts so from now on, and reads what was written before.

    `key`: what it is encrypted by, unless the provider has keys already.
    """
    before = before or Encryption()
    new = {provider: {"keys": [{"name": _KEY_NAME, "secret": key}]}}
    ours = next((one for one in before.providers if one.get(provider)), new)
    others = [one for one in before.providers if provider not in one and "identity" not in one]
    group = {
        # Whoever does not know that something is encrypted can't read it.
        "resources": covering.fewest((*resources, *before.resources)),
        "providers": [ours, *others, _IDENTITY],
    }
    return kubeconfig.text({"apiVersion": _VERSION, "kind": _KIND, "resources": [group]})


def faults(found: Encryption, provider: Provider, resources: Sequence[str]) -> list[str]:
    """Why a configuration is not the one that is wanted; more resources do no harm."""
    reasons = []
    if found.provider != provider:
        reasons.append(f"encrypts by `{found.provider}`, want `{provider}`")
    elif not found.key:
        reasons.append("has no key")
    known = found.resources
    lacking = (one for one in resources if not any(covering.covers(other, one) for other in known))
    reasons += [f"does not encrypt `{one}`" for one in lacking]
    return reasons
