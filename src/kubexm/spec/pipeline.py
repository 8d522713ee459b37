"""The door for pipeline files: read and checked as a whole; what is wrong is told by the planner.

A file that is wrong somewhere is a pipeline all the same, as far as it is sound: so its planning
finds what else is wrong, and all problems come at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from kubexm.document import literals, source
from kubexm.document.findings import Finding
from kubexm.document.problems import other_kind
from kubexm.document.source import Document
from kubexm.spec import checks, problems, sound
from kubexm.spec.model import PipelineSpec
from kubexm.spec.sound import NO_GAPS, Gaps

_INVALID = "is not a valid pipeline"
_OTHERS = {"Cluster": "make it with `kubexm create cluster -f FILE`, or name a pipeline file"}


class Pipeline(msgspec.Struct, frozen=True):
    """A pipeline as far as it is sound, and the document it was written in."""

    spec: PipelineSpec
    document: Document
    found: tuple[Finding, ...] = ()
    """What is wrong with it, as far as that shows without planning."""
    gaps: Gaps = NO_GAPS
    """What is not in `spec` for that."""

    @property
    def name(self) -> str:
        return self.spec.metadata.name

    @property
    def is_valid(self) -> bool:
        return not self.found and not self.document.notes


def read_pipeline(path: Path, *, allow_literal_secrets: bool = False) -> Pipeline:
    """The pipeline in a file; `InvalidPipeline` if no part of it can be planned."""
    return checked(source.read(path), allow_literal_secrets=allow_literal_secrets)


def parse_pipeline(
    text: str | bytes,
    file: str = "<text>",
    *,
    directory: Path | None = None,
    allow_literal_secrets: bool = False,
) -> Pipeline:
    """The pipeline in a text; `InvalidPipeline` if no part of it can be planned."""
    document = source.parse(text, file, directory)
    return checked(document, allow_literal_secrets=allow_literal_secrets)


def pipeline_from(data: Any) -> Pipeline:
    """The pipeline that some plain data describes, such as a request brought."""
    return checked(source.from_data(data))


def checked(document: Document, *, allow_literal_secrets: bool = False) -> Pipeline:
    """The pipeline in a document, with what is wrong with it."""
    data = document.data
    if other := other_kind(document, "Pipeline", _OTHERS):
        listed = problems.placed([other], document)
        raise problems.refusal(document, _INVALID, listed, is_all=True)
    spec, of_form = _modelled(data)
    of_form.extend(checks.findings(data))
    of_secrets = list(checks.misplaced_secrets(data))
    if not allow_literal_secrets:
        of_secrets.extend(literals.findings(data))
    found = (*of_form, *of_secrets)
    # A secret that was written out will be a reference, which may stand in fewer places.
    in_the_way = [*of_form, *filter(_is_of_a_variable, of_secrets)]
    if spec is not None and not in_the_way:
        return Pipeline(spec, document, found)
    part = sound.sound_part(data, in_the_way)
    if part is None:
        listed = problems.placed(found, document)
        raise problems.refusal(document, _INVALID, listed, is_all=False)
    return Pipeline(part[0], document, found, part[1])


def _modelled(data: Any) -> tuple[PipelineSpec | None, list[Finding]]:
    spec, mistakes = PipelineSpec.read(data)
    return spec, problems.of_form(mistakes, data)


def _is_of_a_variable(finding: Finding) -> bool:
    match finding.path:
        case ("spec", "vars", *_) | ("spec", "hosts" | "groups", _, "vars", *_):
            return True
    return False
