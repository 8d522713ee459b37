"""Role names that the program itself gives a meaning."""

CONTROL_NODE = "control-node"
"""The machine kubexm runs on: a host and a role of its own, made by the program."""

ALL = "all"
"""Every host of the inventory, without the control node."""
