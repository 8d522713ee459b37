"""Reference pages for pipeline files and steps, written from the models themselves.

`python -m kubexm.spec.reference docs/reference` writes both.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect as types

from kubexm.config import ssh
from kubexm.document import pages
from kubexm.document.docstrings import class_example, class_text, field_texts
from kubexm.document.forms import Form
from kubexm.sim.settings import WorldSettings
from kubexm.spec import conditions, model, shapes
from kubexm.spec.files import TARGETS
from kubexm.spec.local import SOURCE
from kubexm.spec.parameters import Parameter, as_written, written_parameters
from kubexm.step import registry
from kubexm.step.contract import Expander, Minter, Reader, Step

_NOTE = "<!-- Written by `python -m kubexm.spec.reference docs/reference`; edit the sources. -->"
MODELS: tuple[type[Form], ...] = (
    model.PipelineSpec,
    model.Metadata,
    model.PipelineBody,
    model.HostSpec,
    model.GroupSpec,
    ssh.SshSpec,
    ssh.JumpSpec,
    ssh.BecomeSpec,
    model.FactsSpec,
    model.SystemSpec,
    model.DiskSpec,
    model.FilesystemSpec,
    model.NetworkSpec,
    model.ClockSpec,
    model.ModuleSpec,
    model.TaskSpec,
    model.StepSpec,
    model.HooksSpec,
    model.HookSpec,
    model.RetrySpec,
    model.LimitsSpec,
    model.ToleranceSpec,
    model.AfterSpec,
    model.RollingSpec,
    model.PoolSpec,
)
_WORDS = {
    **pages.WORDS,
    "OwnRole": "name",
    "VariableName": "name",
    "Condition": "expression",
    "Entries": "list, or `${vars.NAME}`",
}
_OPENING = """# Pipeline file

A pipeline is one YAML or JSON document, read as YAML 1.2: `no`, `on` and `22:22` are text, a key
stands once, tags and merge keys are refused.
The problems of a file are reported together, each with its line and column; where one hides others,
such as a step that can't be read, the last line says that more may be found.

```yaml
apiVersion: kubexm.io/v1alpha1
kind: Pipeline
metadata:
  name: hello
spec:
  hosts:
    - name: web1
      roles: [web]
  modules:
    - name: greet
      tasks:
        - name: message
          runOnRoles: [web]
          steps:
            - name: motd
              file: {path: /etc/motd, content: "hello from ${host.name}\\n"}
```

Every step has one key that says its kind, here `file`; the [steps](steps.md) page has them all.

## Words used below

- *name*: letters, digits, `.`, `_` and `-`, with a letter or digit at both ends.
- *duration*: seconds as a number, or text such as `250ms`, `30s`, `5m`, `1h30m`, `2d`.
- *number or percentage*: a number of hosts such as `2`, or a share of them such as `20%`.
- *expression*: see [Expressions](#expressions).
"""
_RANGES = """## Ranges

`name: node[01:20]` stands for twenty hosts, `node01` to `node20`.
Zeros in front keep the width; `[a:f]` counts letters; several ranges give all combinations, the
last one counting fastest.
A range in `address` has as many members as the one in `name`, and they go together in order:

```yaml
hosts:
  - {name: "node[01:20]", address: "10.0.0.[11:30]", roles: [worker]}
```

Labels and variables of such hosts may differ by `${host.name}` and `${host.address}`.
Ranges make 10,000 hosts of a file at most.
"""
_SIMULATION = """## Simulation

With `--simulate` no host is touched: each one is simulated, as `simulate` says.
Times are seconds.
"""
_CLOSING = """## References

Parameters of steps may hold references.
A text that is one reference becomes the value itself, with its type; where a parameter takes only
text, a number or a truth value is written out, as inside of a longer text: `3`, `1.5`, `true`.
`$${` stands for a literal `${`.

| reference | what it names | known |
|---|---|---|
| `${vars.NAME}` | a variable of the pipeline, the host or `--set` | when planning |
| `${host.name}` | the host; also `address`, `roles` and `labels.NAME` | when planning |
| `${item}`, `${item.NAME}` | the entry of `forEach` | when planning |
| `${facts.NAME}` | what the host tells of itself | when it runs; declared or stored in a plan |
| `${values.NAME}` | what a `value` or `mint` step before has left | when it runs |

The names of facts and of their parts are those of [FactsSpec](#factsspec), such as `os.id`,
`memory_mib` and `filesystems.0.free_mib`; one that a host does not tell is missing, and any other
name is refused.
Parts of mappings and lists are named with dots: `${vars.app.ports.0}`.
A variable may hold references to other variables and to the host, a label to `host.name` and
`host.address`.
Variables of a host win over those of the pipeline, and `--set NAME=VALUE` wins over both;
`--set app.port=80` sets a part of a variable.
The value of `--set` is read as in the file: `80` is a number, `true` a truth value, `[a, b]` a
list.
So with `bad: "false"` in the file, which is text, `--set bad=true` leaves `vars.bad == 'true'`
false: text is no truth value.
Quotes make it text, inside of those that the shell takes away: `--set 'bad="true"'`.
A reference to a value makes the step wait for it: a step that leaves the value must come before.

## Expressions

`when` is one expression, decided for each unit; where it is false the step has nothing to do.
It may use `vars`, `facts`, `values`, `host` and, under `forEach`, `item`; text and numbers, lists,
`true`, `false` and `null`; `==`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `not in`, `and`, `or`, `not`;
`len(x)`, `defined(x)`, `x.startswith('…')`, `x.endswith('…')`, `x.lower()`, `x.upper()`.
Names that are no plain words are written in brackets: `vars['my-app']`.
The result must be true or false: `vars.count > 0`, not `vars.count`.

```yaml
when: facts.os.id == 'debian' and host.name not in vars.excluded
```

In an `assert` step, `that` is such an expression too.
`kubexm plan` decides conditions as far as it can without a host, and shows `?` for the rest:
see [Facts, and plans without hosts](../explanation/facts.md).

## Secrets

A password, token or private key that is written out is refused, in variables, parameters and
settings of connections alike.
Write where to find it: `env://NAME` for an environment variable of the machine kubexm runs on,
`file:///PATH` for a file there, `prompt://WHAT` for what a person types on the terminal.
That is asked for once in a run, for all who name the same, before the first connection.
`--allow-literal-secrets` switches the check off.

A value with `secret: true` may stand where nobody else sees it, and is refused anywhere else:

| step | parameters |
|---|---|
%s
A file that holds one is treated as `secret`, and has the mode `0600` unless another is given; a
file that is edited keeps the mode that it has.
A `when` may ask for such a value, too.

## Files beside the pipeline

Where a step takes a `source`, the path starts beside the pipeline file.
The file is read when planning; its content is part of the graph.
Of a `file` step that is so up to 64 KiB: of a larger one, and of the files of a `tree`, the graph
has the checksum, and a run sends what has that checksum or says that it has changed.
Its name may hold `${item}`, and `${vars.NAME}` where that is the same on all hosts of the step.
"""


def render_pipeline_reference() -> str:
    """The page about pipeline files."""
    sections = (_section(cls) for cls in MODELS)
    closing = _CLOSING % "".join(_secret_places())
    return "\n".join([_NOTE, "", _OPENING, *sections, _RANGES, _SIMULATION, *_worlds(), closing])


def _secret_places() -> Iterator[str]:
    """A row for each kind of step that takes secret values."""
    for kind, cls in sorted(registry.kinds().items()):
        known = written_parameters(kind).items()
        names = [f"`{name}`" for name, item in known if item.field in cls.takes_secrets]
        if names:
            yield f"| [`{kind}`](steps.md#{kind}) | {', '.join(names)} |\n"


def render_steps_reference() -> str:
    """The page about kinds of steps."""
    kinds = sorted(registry.kinds().items())
    listed = ", ".join(f"[`{kind}`](#{kind})" for kind, _ in kinds)
    opening = (
        "# Steps\n\nA step is the smallest change to one host, and says what is true afterwards.\n"
        "In a [pipeline file](pipeline-file.md) its kind is a key of the step, its parameters are"
        " the mapping under that key.\n"
        f"\nKinds: {listed}.\n"
    )
    return "\n".join([_NOTE, "", opening, *(_step(kind, cls) for kind, cls in kinds)])


def _worlds() -> Iterator[str]:
    """What `simulate` may hold: its settings, and every type that these hold."""
    seen: dict[str, types.StructType] = {}
    _collect(shapes.shape(WorldSettings), seen)
    for name, kind in seen.items():
        texts = field_texts(kind.cls)
        rows = [_struct_row(field, texts) for field in kind.fields]
        if kind.tag is not None:
            rows.insert(0, (f"`{kind.tag_field}`", f"`{kind.tag}`", "**required**", ""))
        yield "\n".join([f"### {name}", "", class_text(kind.cls), "", *pages.table(rows), ""])


def _collect(kind: types.Type, seen: dict[str, types.StructType]) -> None:
    if isinstance(kind, types.StructType) and kind.cls.__name__ not in seen:
        seen[kind.cls.__name__] = kind
        for field in kind.fields:
            _collect(field.type, seen)
    for choice in shapes.alternatives(kind):
        for inner in (choice if choice is not kind else None, *_held(choice)):
            if inner is not None:
                _collect(inner, seen)


def _held(kind: types.Type) -> Iterator[types.Type]:
    for attribute in ("item_type", "value_type"):
        if isinstance(inner := getattr(kind, attribute, None), types.Type):
            yield inner


def _struct_row(field: types.Field, texts: Mapping[str, str]) -> tuple[str, str, str, str]:
    default = "**required**" if field.required else pages.default_text(_struct_default(field))
    text = texts.get(field.name, "")
    return f"`{field.encode_name}`", _linked(field.type), default, text


def _struct_default(field: types.Field) -> Any:
    return None if field.default is msgspec.NODEFAULT else field.default


def _linked(kind: types.Type) -> str:
    """A shape in words, with links to the types that have a section."""
    names = [
        f"[{found.cls.__name__}](#{found.cls.__name__.lower()})"
        for found in (kind, *shapes.alternatives(kind), *_held(kind))
        if isinstance(found, types.StructType)
    ]
    if not names:
        return shapes.described(kind)
    words = " or ".join(dict.fromkeys(names))
    if isinstance(kind, types.DictType):
        return f"mapping of names to {words}"
    return f"list of {words}" if isinstance(kind, types.VarTupleType) else words


def _section(form: type[Form]) -> str:
    is_step = issubclass(form, model.StepFields)
    return pages.section(form, _WORDS, " One more key is its [kind](steps.md)." * is_step)


def _step(kind: str, cls: type[Step]) -> str:
    lines = [f"## {kind}", "", as_written(kind, class_text(cls)), *_nature(cls), ""]
    lines.extend(_example(cls))
    known = written_parameters(kind)
    rows = [_parameter(name, parameter, cls) for name, parameter in known.items()]
    if kind in TARGETS and SOURCE not in known:
        text = f"A file beside the pipeline file, in place of `{TARGETS[kind].text}`."
        rows.append((f"`{SOURCE}`", "text", "", text))
    return "\n".join([*lines, *(pages.table(rows) if rows else ["It has no parameters."]), ""])


def _nature(cls: type[Step]) -> Iterator[str]:
    if issubclass(cls, Reader):
        yield "\nIt changes nothing, runs every time, in a dry run too, and leaves a value."
    if issubclass(cls, Minter):
        yield "\nIt runs only when a step that needs its value has something to do."
    if issubclass(cls, Expander):
        yield "\nIt changes nothing and adds steps to the running graph."


def _example(cls: type[Step]) -> Iterator[str]:
    if example := class_example(cls):
        yield f"```yaml\n{example}```\n"


def _parameter(name: str, parameter: Parameter, cls: type[Step]) -> tuple[str, str, str, str]:
    default = "**required**" if parameter.required else pages.default_text(parameter.default)
    text = field_texts(cls).get(parameter.field, "")
    return f"`{name}`", _shape(cls.kind, name, parameter), default, as_written(cls.kind, text)


def _shape(kind: str, name: str, parameter: Parameter) -> str:
    if (kind, name) == (conditions.KIND, conditions.THAT):
        return "[expression](pipeline-file.md#expressions)"
    return shapes.described(parameter.described)


def written_pages() -> dict[str, str]:
    """Every page by the name of its file."""
    return {"pipeline-file.md": render_pipeline_reference(), "steps.md": render_steps_reference()}


def main(directory: Path) -> None:
    """Write every page into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in written_pages().items():
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
