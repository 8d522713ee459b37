"""The door for pipeline files: read, checked as a whole, and refused with every problem at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kubexm.errors import InvalidPipeline
from kubexm.spec import checks, literals, problems, source
from kubexm.spec.model import PipelineSpec
from kubexm.spec.source import Document


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A valid pipeline, and the document it was written in."""

    spec: PipelineSpec
    document: Document

    @property
    def name(self) -> str:
        return self.spec.metadata.name


def read_pipeline(path: Path, *, allow_literal_secrets: bool = False) -> Pipeline:
    """The pipeline in a file; `InvalidPipeline` with every problem if there is any."""
    return checked(source.read(path), allow_literal_secrets=allow_literal_secrets)


def parse_pipeline(
    text: str | bytes,
    file: str = "<text>",
    *,
    directory: Path | None = None,
    allow_literal_secrets: bool = False,
) -> Pipeline:
    """The pipeline in a text; `InvalidPipeline` with every problem if there is any."""
    document = source.parse(text, file, directory)
    return checked(document, allow_literal_secrets=allow_literal_secrets)


def pipeline_from(data: Any) -> Pipeline:
    """The pipeline that some plain data describes, such as a request brought."""
    return checked(source.from_data(data))


def checked(document: Document, *, allow_literal_secrets: bool = False) -> Pipeline:
    """The pipeline in a document."""
    found = list(checks.findings(document.data))
    if not allow_literal_secrets:
        found.extend(literals.findings(document.data))
    spec: PipelineSpec | None = None
    try:
        spec = PipelineSpec.model_validate(document.data)
    except ValidationError as error:
        found.extend(problems.of_validation(error, document.data))
    if spec is None or found or document.notes:
        raise InvalidPipeline(
            f"`{document.file}` is not a valid pipeline",
            problems=problems.placed(found, document),
            hint=source.CORRECT,
        )
    return Pipeline(spec, document)
