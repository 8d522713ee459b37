"""Role names that the program itself gives a meaning."""

CONTROL_NODE = "control-node"
"""The machine kubexm runs on: a host and a role of its own, made by the program."""

ALL = "all"
"""Every host of the inventory, without the control node."""

CONTROL_PLANE = "control-plane"
"""Runs the API server and what belongs to it."""

WORKER = "worker"
"""Runs pods."""

ETCD = "etcd"
"""Runs a member of etcd."""

LOADBALANCER = "loadbalancer"
"""Stands in front of the API servers."""

REGISTRY = "registry"
"""Has the images."""
