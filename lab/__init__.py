"""Real Debian hosts on one machine, to test in: systemd, sshd, a network of their own.

This package is a tool of the repository and no part of the product: no module of kubexm
imports it, and the wheel does not hold it.
"""
