"""Which pods may run on which nodes."""

from __future__ import annotations

from kubexm.sim.kubedocs import Object, entries, part, section

_KEEPS_AWAY = ("NoSchedule", "NoExecute")


def fits(node: Object, pod: Object, *, daemon: bool = False) -> bool:
    """Whether a pod may come onto a node; those of daemon sets come onto nodes that rest too."""
    if part(node, "spec", "unschedulable") and not daemon:
        return False
    labels = section(node, "metadata", "labels")
    wanted = section(pod, "nodeSelector")
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    if not _is_near(labels, pod):
        return False
    tolerations = entries(pod, "tolerations")
    taints = [one for one in entries(node, "spec", "taints") if one.get("effect") in _KEEPS_AWAY]
    return all(any(_tolerates(one, taint) for one in tolerations) for taint in taints)


def selected(labels: Object, selector: str) -> bool:
    """Whether labels are as a selector of a command line wants them."""
    for term in filter(None, selector.split(",")):
        key, sign, value = term.replace("==", "=").partition("=")
        if key.endswith("!"):
            if labels.get(key[:-1]) == value:
                return False
        elif labels.get(key) != value if sign else key not in labels:
            return False
    return True


def _tolerates(toleration: Object, taint: Object) -> bool:
    key, effect = toleration.get("key"), toleration.get("effect")
    if key and key != taint.get("key"):
        return False
    if effect and effect != taint.get("effect"):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")


def _is_near(labels: Object, pod: Object) -> bool:
    """Whether a node has what the pod's affinity demands of it."""
    demanded = section(pod, "affinity", "nodeAffinity").get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    terms = entries(demanded, "nodeSelectorTerms")
    return not terms or any(_matches(labels, term) for term in terms)


def _matches(labels: Object, term: Object) -> bool:
    return all(_holds(labels, one) for one in entries(term, "matchExpressions"))


def _holds(labels: Object, expression: Object) -> bool:
    found, values = labels.get(expression.get("key", "")), entries(expression, "values")
    match expression.get("operator"):
        case "In":
            return found in values
        case "NotIn":
            return found not in values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
    return False
