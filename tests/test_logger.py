"""Log lines are structured, bound to a run and a unit, and free of secrets."""

from __future__ import annotations

import contextvars
import io
import json

from kubexm import logger
from kubexm.runtime.secrets import SecretVault


def test_json_lines_carry_the_bound_fields() -> None:
    stream = io.StringIO()
    logger.configure("json", "info", stream=stream)

    def work() -> None:
        logger.bind(task_id="t1")
        logger.get(step_name="etcd/install", hostname="node1").info("unit changed", attempt=2)

    contextvars.copy_context().run(work)

    line = json.loads(stream.getvalue())
    found = {key: line[key] for key in ("task_id", "step_name", "hostname", "event", "attempt")}
    assert found == {
        "task_id": "t1",
        "step_name": "etcd/install",
        "hostname": "node1",
        "event": "unit changed",
        "attempt": 2,
    }


def test_lines_below_the_level_are_left_out() -> None:
    stream = io.StringIO()
    logger.configure("text", "warning", stream=stream)

    logger.get().info("quiet")
    logger.get().warning("loud")

    assert "loud" in stream.getvalue()
    assert "quiet" not in stream.getvalue()


def test_a_secret_is_redacted_in_every_field_however_deep() -> None:
    vault, stream = SecretVault(), io.StringIO()
    vault.conceal("hunter2!")
    logger.configure("json", "info", stream=stream, redact=vault.redact)

    logger.get().info("login hunter2!", command=["login", "hunter2!"], more={"x": "hunter2!"})

    assert "hunter2!" not in stream.getvalue()
    assert stream.getvalue().count("***") == 3
