"""What a stored step is about, in the words of its class."""

from __future__ import annotations

from kubexm.plan import StepSpec
from kubexm.plan.outline import kind_and_params
from kubexm.spec import parameters, shapes
from kubexm.step import registry


def describe(step: StepSpec) -> str:
    """What is true after a step, in one line; references stand as they are written."""
    if step.kind not in registry.kinds():
        return kind_and_params(step)
    for parameter in parameters.parameters_of(step.kind).values():
        value = step.params.get(parameter.field, shapes.OPEN)
        if any(shapes.mismatches(value, parameter.shape)):
            # A reference where the class has no text: it has no words for that.
            return kind_and_params(step)
    return parameters.sketch(registry.find(step.kind), step.params).summary()
