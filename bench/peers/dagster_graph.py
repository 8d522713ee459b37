"""Run WIDTH lanes of DEPTH Dagster ops in process, count them in storage, print the time."""

import json
import sys
import time

from dagster import DagsterEventType, DagsterInstance, In, Nothing, Out, job, op

width, depth = int(sys.argv[1]), int(sys.argv[2])


@op(out=Out(Nothing))
def first() -> None:
    """Open a lane."""


@op(ins={"after": In(Nothing)}, out=Out(Nothing))
def unit() -> None:
    """Follow in a lane; a Nothing dependency spares Dagster the input and output managers."""


@job
def lanes() -> None:
    """Chain each lane's ops in order."""
    for lane in range(width):
        head = first.alias(f"unit_0_{lane}")()
        for layer in range(1, depth):
            head = unit.alias(f"unit_{layer}_{lane}")(after=head)


quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
instance = DagsterInstance.get()
start = time.perf_counter()
result = lanes.execute_in_process(instance=instance, run_config=quiet)
seconds = time.perf_counter() - start
stored = instance.all_logs(result.run_id, of_type=DagsterEventType.STEP_SUCCESS)
if len(stored) != width * depth:
    sys.exit(f"stored {len(stored)} of {width * depth} successes")
print(json.dumps({"seconds": seconds}))
