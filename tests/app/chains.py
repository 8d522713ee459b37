"""Random pipelines, and random chains of what users do with their runs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

HOSTS = ("n1", "n2")
LOCK = "/run/lock"
COMPENSATED = "/srv/compensated"
WORLD = {
    # Long enough for a stop to come in the midst of a unit.
    "latency": {"kind": "fixed", "seconds": 0.0003},
    "machine": {
        "files": {
            "/srv/b": "a\nx=0\nb",
            "/etc/conf": "before\n",
            "/srv/old/deep/data": "of others\n",
            "/srv/empty": "",
        },
        "services": {"web": {"active": True}, "off": {"enabled": True}},
        "packages": {"curl": "1.0"},
    },
    "scripts": [
        {"argv": ["deploy", "all"], "exit": 1},
        {"argv": ["deploy", "n2"], "hosts": "n2", "exit": 1},
        {"argv": ["deploy", "*"]},
        {"argv": ["version", "1"], "stdout": "1\n"},
        {"argv": ["version", "2"], "stdout": "2\n"},
        {"argv": ["make", "1"], "effects": {"files": {"/srv/made1": "1"}}},
        {"argv": ["make", "2"], "effects": {"files": {"/srv/made2": "2"}}},
        {"argv": ["unmake", "1"], "effects": {"absent": ["/srv/made1"]}},
        {"argv": ["unmake", "2"], "effects": {"absent": ["/srv/made2"]}},
        {"argv": ["leave"], "effects": {"files": {"/srv/left": "left"}}},
        {"argv": ["lock"], "effects": {"files": {LOCK: "held"}}},
        {"argv": ["unlock"], "effects": {"absent": [LOCK]}},
        {"argv": ["scoped"], "effects": {"files": {COMPENSATED: "ours"}}},
        {"argv": ["unscoped"], "effects": {"absent": [COMPENSATED]}},
    ],
}
FILES = ("/srv/a", "/srv/b", "/etc/conf", "/srv/empty", "/srv/d/x", "/srv/d/e/y", "/srv/old/z")
DIRECTORIES = ("/srv/d", "/srv/d/e", "/srv/old", "/srv/old/deep", "/srv/a")


@dataclass(frozen=True)
class Step:
    """A step of a pipeline, by name."""

    name: str
    kind: str
    params: dict[str, Any]

    def __str__(self) -> str:
        return json.dumps({"name": self.name, self.kind: self.params})

    def touches(self) -> tuple[str, ...]:
        """The cells of a host that it may change, each with all below."""
        match self.kind:
            case "service":
                return (f"service:{self.params['unit']}.service", "/var/lib/kubexm/services")
            case "package":
                return tuple(f"package:{name}" for name in self.params["names"])
            case "command":
                word, *rest = self.params["argv"]
                made = f"/srv/made{rest[0]}" if word == "make" else ""
                return (made or {"leave": "/srv/left"}.get(word, ""),)
            case "value" | "mint":
                return ()
        return (self.params["path"],)


@dataclass(frozen=True)
class File:
    """A pipeline: tasks of steps, one after the other, and a last step that may fail."""

    tasks: tuple[tuple[Step, ...], ...]
    policy: str = "isolate"
    fails: str = "all"
    v: str = "1"
    hooks: bool = False
    scope: str = ""
    hosts: tuple[str, ...] = HOSTS

    def __str__(self) -> str:
        flags = [self.policy, f"fails={self.fails}", f"v={self.v}"]
        flags += ["hooks"] * self.hooks + [self.scope] * bool(self.scope)
        lines = [", ".join(flags)]
        for number, task in enumerate(self.tasks):
            lines += [f"  task{number}:", *(f"    {step}" for step in task)]
        return "\n".join(lines)

    @property
    def steps(self) -> dict[str, Step]:
        return {step.name: step for task in self.tasks for step in task}

    @property
    def is_at_peace(self) -> bool:
        """Whether no step takes away what another makes, at the same path or in it."""
        steps = [step for step in self.steps.values() if "path" in step.params]
        return not any(_fight(*pair) for pair in itertools.permutations(steps, 2))

    def spec(self) -> str:
        """As the body of a pipeline file."""
        tasks = [
            {"name": f"task{number}", "steps": [json.loads(str(step)) for step in task]}
            for number, task in enumerate(self.tasks)
        ]
        last = {"name": "fails", "command": {"argv": ["deploy", self.fails]}}
        module: dict[str, Any] = {
            "name": "base",
            "tasks": [*tasks, {"name": "last", "steps": [last]}],
        }
        if self.hooks:
            module["hooks"] = {
                "pre": [{"name": "lock", "command": {"argv": ["lock"]}}],
                "always": [{"name": "unlock", "command": {"argv": ["unlock"]}}],
            }
        body = {
            "hosts": [{"name": name, "roles": ["node"]} for name in self.hosts],
            "runOnRoles": ["node"],
            "vars": {"v": self.v},
            "onFailure": self.policy,
            "modules": [*self._scope(), module],
            "simulate": WORLD,
        }
        return "\n".join(f"{key}: {json.dumps(value)}" for key, value in body.items())

    def _scope(self) -> Iterator[dict[str, Any]]:
        if self.scope:
            made = {"name": "scoped", "command": {"argv": ["scoped"], "creates": COMPENSATED}}
            module: dict[str, Any] = {
                "name": "scope",
                "tasks": [{"name": "scoped", "steps": [made]}],
            }
            if self.scope == "compensate":
                module["compensate"] = [{"name": "back", "command": {"argv": ["unscoped"]}}]
            yield module


@dataclass(frozen=True)
class Stop:
    """A stop when so many units have started, on the way there or back."""

    undo: bool
    number: int

    def __str__(self) -> str:
        return f", stopped at start {self.number} {'back' if self.undo else 'forth'}"


@dataclass(frozen=True)
class Act:
    """Something that a user does with a run."""

    kind: str
    """run, resume, retry"""
    file: File | None = None
    on_failure: str | None = None
    stop: Stop | None = None

    def __str__(self) -> str:
        policy = f", on failure {self.on_failure}" if self.on_failure else ""
        file = f": {self.file}" if self.file else ""
        return f"{self.kind}{policy}{self.stop or ''}{file}"


Chain = tuple[Act, ...]


def described(chain: Chain) -> str:
    return "\n".join(str(act) for act in chain)


def on_one_host(acts: Chain) -> Chain:
    """The same where nothing happens at once, on the host that fails most often."""
    return tuple(
        replace(act, file=replace(act.file, hosts=("n2",))) if act.file else act for act in acts
    )


def has_directory_of_two_names(acts: Chain) -> bool:
    """Whether steps of different names are about one directory.

    The later one is undone in its own place, and takes away with the directory what is above it,
    though what the former file had changed there has yet to be undone: that fails, and is told.
    """
    files = [act.file for act in acts if act.file is not None]
    steps = [step for file in files for step in file.steps.values() if step.kind == "directory"]
    pairs = itertools.combinations({(step.params["path"], step.name) for step in steps}, 2)
    return any(one == other for (one, _), (other, _) in pairs)


def chain(seed: int) -> Chain:
    """A chain that ends with a rollback of everything."""
    return _Chains(Random(seed)).chain()


class _Chains:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._choice = random.choice

    def _likely(self, chance: float) -> bool:
        return self._random.random() < chance

    def chain(self) -> Chain:
        file = self._first()
        acts = [Act("run", file, stop=self._stop())]
        for _ in range(self._random.randint(0, 4)):
            kind = self._choice(("resume", "retry", "retry", "corrected", "corrected"))
            if kind == "retry" and not file.is_at_peace:
                # Its steps undo each other's work, so a step that was satisfied has to be done
                # after those that it stands before: no order of the file tells what came first.
                kind = "corrected"
            if kind == "corrected":
                file = self._corrected(file)
                acts.append(Act("retry", file, stop=self._stop()))
            else:
                policy = self._choice((None, None, "rollback", "isolate"))
                asked = policy if kind == "retry" else None
                acts.append(Act(kind, None, asked, self._stop()))
        if self._likely(0.5):
            file = self._corrected(file)
        file = replace(file, fails="all")
        stop = self._stop(undo=True) if self._likely(0.4) else None
        acts.append(Act("retry", file, "rollback", stop))
        return tuple(acts)

    def _stop(self, *, undo: bool | None = None) -> Stop | None:
        if undo is None and self._likely(0.55):
            return None
        undo = self._likely(0.5) if undo is None else undo
        return Stop(undo, self._random.randint(1, 8))

    def _first(self) -> File:
        names = [f"s{number}" for number in range(1, self._random.randint(3, 6) + 1)]
        return File(
            tasks=self._in_tasks([self._step(name) for name in names]),
            policy=self._policy(),
            fails=self._fails(),
            hooks=self._likely(0.2),
            scope=self._choice(("", "", "", "compensate", "plain")),
        )

    def _policy(self) -> str:
        return self._choice(("isolate", "rollback"))

    def _fails(self) -> str:
        return self._choice(("all", "n2", "none"))

    def _in_tasks(self, steps: list[Step]) -> tuple[tuple[Step, ...], ...]:
        made = [step for step in steps if step.name == "ver"]
        rest = _lasting([step for step in steps if step.name != "ver"])
        if not made and any("${values." in str(step) for step in rest):
            made = [self._version()]
        rest = rest or [Step("some", "file", {"path": "/srv/a", "content": "some"})]
        cut = self._random.randint(1, 2)
        cuts = [rest] if cut == 1 or len(rest) < 2 else [rest[:2], rest[2:]]
        # What leaves a value goes first, so that all may use it.
        tasks = [made, *cuts]
        return tuple(tuple(task) for task in tasks if task)

    def _corrected(self, file: File) -> File:
        steps: list[Step] = []
        for step in file.steps.values():
            fate = self._random.random()
            if fate < 0.55:
                steps.append(step)
            elif fate < 0.75:
                steps.append(self._step(step.name))
            elif fate < 0.85 and step.name != "ver":
                steps.append(replace(step, name=f"{step.name}r"))
        if self._likely(0.25):
            self._random.shuffle(steps)
        if self._likely(0.3) or not steps:
            steps.insert(self._random.randint(0, len(steps)), self._step(f"n{self._fresh()}"))
        return replace(
            file,
            tasks=self._in_tasks(_sound(steps)),
            policy=self._policy() if self._likely(0.3) else file.policy,
            fails=self._fails(),
            v=self._choice(("1", "1", "2")),
            hooks=file.hooks if self._likely(0.85) else not file.hooks,
            scope=file.scope if self._likely(0.8) else self._choice(("", "compensate", "plain")),
        )

    def _fresh(self) -> int:
        return self._random.randint(1, 10**6)

    def _step(self, name: str) -> Step:
        kinds = ["file"] * 4 + ["template"] * 2 + ["directory"] * 3 + ["absent"] * 3
        kinds += ["line"] * 3 + ["block"] * 2 + ["service"] * 2 + ["package"] + ["command"] * 2
        if name == "ver":
            return self._version()
        kind = self._choice(kinds)
        return Step(name, kind, getattr(self, f"_{kind}")())

    def _text(self) -> str:
        return self._choice(
            ("one\n", "two", "a\nx=1\n", "", "v=${vars.v}\n", "${host.name}\n", "${values.version}")
        )

    def _attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._likely(0.3):
            found["mode"] = self._choice(("0600", "0755"))
        if self._likely(0.15):
            found["owner"] = "nobody"
        return found

    def _file(self) -> dict[str, Any]:
        params: dict[str, Any] = {"path": self._path(), **self._attributes()}
        if self._likely(0.9):
            params["content"] = self._text()
        return params

    def _template(self) -> dict[str, Any]:
        return {"path": self._path(), "text": self._text(), **self._attributes()}

    def _path(self) -> str:
        if self._likely(0.08):
            return "/srv/f.${vars.v}"
        return self._choice(FILES)

    def _directory(self) -> dict[str, Any]:
        return {"path": self._choice(DIRECTORIES), **self._attributes()}

    def _absent(self) -> dict[str, Any]:
        if self._likely(0.5):
            return {"path": self._choice(FILES)}
        return {"path": self._choice(DIRECTORIES), "recursive": True}

    def _line(self) -> dict[str, Any]:
        params: dict[str, Any] = {
            "path": self._choice(FILES),
            "line": self._choice(("x=1", "x=2", "x=${vars.v}")),
            "match": "^x=",
        }
        if self._likely(0.25):
            params["absent"] = True
        return params

    def _block(self) -> dict[str, Any]:
        content = self._choice(("one\n", "two\n", "${vars.v}\n"))
        return {"path": self._choice(FILES), "content": content}

    def _service(self) -> dict[str, Any]:
        unit = self._choice(("web", "off"))
        params: dict[str, Any] = {"unit": unit}
        params["running"] = self._choice((True, True, False, None))
        params["enabled"] = self._choice((True, False))
        if params["running"] and self._likely(0.6):
            params["restartsOn"] = [self._choice(("/etc/conf", "/srv/b"))]
        return params

    def _package(self) -> dict[str, Any]:
        names = self._choice((["curl"], ["nginx"], ["curl", "nginx"]))
        return {"names": names, "present": self._likely(0.6)}

    def _command(self) -> dict[str, Any]:
        if self._likely(0.15):
            return {"argv": ["leave"]}
        number = self._choice(("1", "2"))
        params: dict[str, Any] = {"argv": ["make", number], "undo": ["unmake", number]}
        if self._likely(0.5):
            params["creates"] = f"/srv/made{number}"
        return params

    def _version(self) -> Step:
        params = {"key": "version", "argv": ["version", self._choice("12")], "scope": "host"}
        return Step("ver", self._choice(("value", "value", "mint")), params)


def _lasting(steps: list[Step]) -> list[Step]:
    """Those of which no later one makes what they want to be absent.

    Such a step is satisfied at first, and has to be done in the next go, after what it stands
    before. Nothing tells a rollback so, where the file is the same.
    """
    return [
        step
        for place, step in enumerate(steps)
        if not _wants_absence(step)
        or not any(_fight(step, later) for later in steps[place + 1 :] if "path" in later.params)
    ]


def _wants_absence(step: Step) -> bool:
    return step.kind == "absent" or "absent" in step.params


def _fight(one: Step, other: Step) -> bool:
    if one.params["path"] == other.params["path"]:
        return {one.kind, other.kind} != {"line", "block"}
    return one.kind == "absent" and other.params["path"].startswith(f"{one.params['path']}/")


def _sound(steps: list[Step]) -> list[Step]:
    return list({step.name: step for step in steps}.values())
