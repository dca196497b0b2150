"""What a segmenter that asks a model is given."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from harness_core.client import Client
from harness_core.documents.types import Document
from harness_core.flows.types import Flow
from harness_core.segmenting.spec import SegmentSpec

if TYPE_CHECKING:
    from harness_core.ranking.vectors import Vectors

Record: TypeAlias = Callable[[str, Mapping[str, Any]], None]
"""Writes a local step: its label and its detail."""
Embed: TypeAlias = "Callable[[Sequence[str]], Flow[Vectors]]"
"""Vectors for texts, one row each, through whatever embeds in this run."""


def no_record(_label: str, _detail: Mapping[str, Any], /) -> None:
    """Write nothing."""


def no_effort(_label: str, /) -> str | None:
    """Send no effort."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentJob:
    """One document to be cut, and what the run offers for it.

    ``client`` is None when there is no model to ask; ``embed`` likewise. ``model`` is named in
    requests (None: the client's own) and ``effort`` gives the effort of a stage label.
    """

    document: Document
    spec: SegmentSpec
    client: Client | None = None
    model: str | None = None
    effort: Callable[[str], str | None] = no_effort
    record: Record = no_record
    embed: "Embed | None" = None
