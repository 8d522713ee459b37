"""Runs that were interrupted go on where they were, in whatever way they ended."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.app.site import Site, stopping_at, statuses, task_of

from kubexm.app import tasks
from kubexm.errors import InvalidInput, Refused
from kubexm.plan.records import UnitDone
from kubexm.step import registry
from kubexm.store import Store

HELD = """
hosts:
  - {name: n1, roles: [node]}
  - {name: n2, roles: [node]}
runOnRoles: [node]
modules:
  - name: base
    tasks:
      - name: work
        link: barrier
        steps:
          - {name: one, file: {path: /srv/one, content: "1"}}
          - {name: serial, value: {key: serial, argv: [read-serial], scope: host}, after: []}
          - {name: counted, command: {argv: [count]}}
          - {name: ticket, runOnRoles: [node], runOnOneOf: [node], file: {path: /srv/t, content: t}}
          - {name: held, wait: {command: [test, -e, /srv/go], interval: 0.02}}
          - {name: last, file: {path: /srv/last, content: "serial"}}
simulate:
  scripts:
    - {argv: [count]}
    - {argv: [read-serial], stdout: "4711\\n"}
"""
