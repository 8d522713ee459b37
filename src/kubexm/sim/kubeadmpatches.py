"""Patches that kubeadm lays over the pods that it writes, by the names of their files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kubexm.sim import kubeapply
from kubexm.sim.kubeadmcerts import Failed
from kubexm.sim.kubedocs import Object, documents
from kubexm.sim.shell import Shell

_NAME = re.compile(
    r"(?P<target>etcd|kube-apiserver|kube-controller-manager|kube-scheduler)"
    r"[^.+]*(\+(?P<kind>strategic|merge|json))?\.(json|yaml)"
)


def patched(shell: Shell, directory: str, pod: Object) -> Object:
    """A pod with the patches for it laid over it, in the order of their names."""
    if directory and shell.files.lookup(directory) is None:
        raise Failed(f"the directory of patches {directory} does not exist")
    for patch in _patches(shell, directory, pod["metadata"]["name"]) if directory else ():
        pod = kubeapply.merged(pod, patch, {})
    return pod


def _patches(shell: Shell, directory: str, name: str) -> Iterator[Object]:
    for file in sorted(shell.files.children(directory)):
        found = _NAME.fullmatch(file)
        # A list of operations is taken as it is: nobody here needs what comes of it.
        if found and found["target"] == name and found["kind"] != "json":
            yield from documents(shell.files.read(f"{directory}/{file}"))
