"""The reference page of the cluster file, and the text on each of its keys, from the forms.

`python -m kubexm.config.reference docs/reference` writes the page.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import msgspec

from kubexm.common.nearest import did_you_mean, nearest
from kubexm.config.model.cluster import ClusterFile, ClusterSpec
from kubexm.document import pages
from kubexm.document.docstrings import class_text, field_texts
from kubexm.document.forms import Field, Form
from kubexm.document.schema import Schema, value_schema, within
from kubexm.errors import InvalidInput

PAGE = "cluster-file.md"
_WORDS = {
    **pages.WORDS,
    "Address": "IP address or DNS name, or a [range](#ranges) of them",
    "OneAddress": "IP address or DNS name",
    "Version": "version",
    "SecretReference": "[secret](#secrets), by reference",
    "KubeName": "name as Kubernetes takes it",
    "DomainName": "domain name",
    "LabelKey": "key of a label",
    "LabelValue": "value of a label",
    "IpAddress": "IP address",
    "IpAddresses": "IP address, or a [range](#ranges) of them",
    "NameServers": "list of IP address, 15 at most",
    "HostAlias": "name of a host",
    "Cidrs": "network, or a list of two",
    "DnsNameOrAddress": "name or IP address",
    "CertifiedName": "name, `*.` and a domain, or IP address",
    "EtcdUrl": "address with `https://` and a port",
    "ProxyUrl": "address with `http://` or `https://`",
    "ProxyExempt": "name, domain, IP address or network",
    "RegistryUrl": "address with `https://` or `http://`",
    "RegistryUser": "name of a user, without `:`",
    "RegistryHost": "host of a registry",
    "ChartUrl": "address with `https://`, `http://` or `oci://`",
    "ChartVersion": "version of a chart",
    "AbsolutePath": "absolute path below `/`",
    "ExportedPath": "absolute path",
    "DirectoryPath": "path",
    "Interface": "name of an interface",
    "SysctlKey": "setting of the kernel",
    "ModuleName": "module of the kernel",
    "PackageName": "name of a package",
    "TimeZone": "time zone",
    "Line": "text of one line",
    "PreflightCheck": "name of a check of kubeadm",
    "EncryptedResource": "resource, such as `secrets` or `*.apps`",
    "LongDuration": "duration",
    "Hooks": "mapping of modules to steps by moment",
}
_PLACE = re.compile(r"\[[^]]*\]")
_WHOLE = (
    "write the whole path, such as `spec.network.podCIDR`; `kubexm config explain spec` lists keys"
)
_NOTE = "<!-- Written by `python -m kubexm.config.reference docs/reference`; edit the sources. -->"
_LINK = re.compile(r"\[([^]]*)\]\(#[^)]*\)")
_OPENING = """# Cluster file

A cluster is one YAML or JSON document, read as YAML 1.2, as a [pipeline file](pipeline-file.md) is.
All problems of a file are reported together, each with its line and column and what to do.
`kubexm create cluster -f FILE` makes the cluster, `kubexm plan -f FILE` shows how.
Hosts and a version are enough:

```yaml
apiVersion: kubexm.io/v1alpha1
kind: Cluster
metadata:
  name: small
spec:
  kubernetes:
    version: v1.36.3
  hosts:
    - {name: "node[1:3]", address: "10.0.0.[11:13]"}
```

The first host is the control plane then, and the others are workers.
`kubexm config show --defaults -f FILE` shows all that follows from a file, and
`kubexm config explain PATH` tells of one key.

## Ranges

`name: node[01:20]` stands for twenty hosts, and a range of `address` goes along with it, as in a
[pipeline file](pipeline-file.md#ranges).

## Secrets

A password, a key or a token is written as `env://NAME`, `file:///PATH` or `prompt://WHAT`, and
nowhere else: one that is written out is refused, unless `--allow-literal-secrets` is given.

## Words used below

- *name*: letters, digits, `.`, `_` and `-`, with a letter or digit at both ends.
- *duration*: seconds as a number, or text such as `250ms`, `30s`, `5m`, `1h30m`, `2d`.
"""


_Keys = tuple[tuple[str, str], ...]


class Explained(msgspec.Struct, frozen=True):
    """What may be said under a key."""

    path: str
    value: str
    default: str
    text: str
    keys: _Keys = ()
    """The keys below it, with their texts."""


def page() -> str:
    """The reference page."""
    forms: list[type[Form]] = [ClusterFile, *within(ClusterFile)]
    return "\n".join([_NOTE, "", _OPENING, *(pages.section(form, _WORDS) for form in forms)])


def explained(path: str) -> Explained:
    """What may be said under a key, given as `spec.network.podCIDR`.

    `network.podCIDR` is the same, and so is `spec.hosts[0].name` as `spec.hosts.name`.
    """
    words = _from_the_top(path)
    found = Explained("", "mapping", "", class_text(ClusterFile), _keys(ClusterFile))
    form: type[Form] | None = ClusterFile
    schema: Schema = {}
    for word in words:
        if form is None:
            schema = _below(schema, path, word)
            found = _told_by_schema(".".join(words), schema)
            continue
        name, field = _field(form, path, word)
        below = _form_within(field.annotation)
        schema = value_schema(field.annotation)
        found = _told(".".join(words), form, name, _keys(below) if below else _described(schema))
        form = below
    return found


def _below(schema: Schema, path: str, word: str) -> Schema:
    """What is said of a key of a value that has a schema of its own."""
    known = schema.get("properties", {})
    if word not in known:
        raise _unknown(path, word, [*known])
    found: Schema = known[word]
    return found


def _told_by_schema(path: str, schema: Schema) -> Explained:
    keys = _described(schema)
    value = "mapping" if keys else "list of steps"
    return Explained(path, value, "", schema.get("description", ""), keys)


def _described(schema: Schema) -> _Keys:
    known = schema.get("properties", {}).items()
    return tuple((key, one.get("description", "")) for key, one in known)


def _from_the_top(path: str) -> list[str]:
    """The words of the whole path, also of one without the `spec` that most keys are in."""
    words = _PLACE.sub("", path).split(".")
    if words[0] in ClusterFile.aliases():
        return words
    if words[0] in ClusterSpec.aliases():
        return ["spec", *words]
    near = nearest(words[0], (*ClusterFile.aliases(), *ClusterSpec.aliases()))
    hint = f"did you mean `{near}`?" if near else _WHOLE
    raise InvalidInput(f"`{path}`: there is no key `{words[0]}`", hint=hint)


def _told(path: str, form: type[Form], name: str, keys: _Keys) -> Explained:
    field = form.fields()[name]
    return Explained(
        path,
        _LINK.sub(r"\1", pages.value_text(form, name, _WORDS)),
        "required" if field.required else pages.default_text(field.said(field.usual)),
        field_texts(form).get(name, ""),
        keys,
    )


def _field(form: type[Form], path: str, word: str) -> tuple[str, Field]:
    for name, field in form.fields().items():
        if field.alias == word:
            return name, field
    raise _unknown(path, word, [field.alias for field in form.fields().values()])


def _unknown(path: str, word: str, known: list[str]) -> InvalidInput:
    shown = [alias for alias in known if "\0" not in alias]
    hint = did_you_mean(word, shown) if shown else "it has no keys"
    return InvalidInput(f"`{path}`: there is no key `{word}`", hint=hint)


def _form_within(annotation: Any) -> type[Form] | None:
    """The form that a key holds, by itself or in a list or mapping; None if it holds none."""
    if isinstance(annotation, type) and issubclass(annotation, Form):
        return annotation
    inner = (part for part in get_args(annotation) if part not in (NoneType, Ellipsis))
    return next(filter(None, map(_form_within, inner)), None)


def _keys(form: type[Form]) -> _Keys:
    texts = field_texts(form)
    fields = ((name, field.alias) for name, field in form.fields().items())
    return tuple((alias, texts.get(name, "")) for name, alias in fields if "\0" not in alias)


def main(directory: Path) -> None:
    """Write the page into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / PAGE).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
