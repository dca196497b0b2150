"""Whether what a response cites is there: its numbered sources, and its quotations."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.schema import NodeWithScore

from harness_core.checks.quotations import is_verbatim
from harness_integrations.llama_index.errors import QuoteError
from harness_integrations.llama_index.nodes import Citation, own_text, places_of

_MARKER = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{12,}?)[\"”“»]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationCheck:
    """One thing a response cites.

    ``marker`` is a source number as in ``[2]``, None for a quotation. ``ok`` says whether it is
    there: the numbered source exists, or the quotation stands word for word in a source. ``start``
    and ``end`` are its place in that node's own text.
    """

    marker: int | None
    quotation: str | None
    ok: bool
    node_id: str | None = None
    start: int | None = None
    end: int | None = None


def verify_response_citations(
    response: RESPONSE_TYPE, *, raise_on_failure: bool = False
) -> list[CitationCheck]:
    """Check every numbered source, every quotation in the text, and every citation of a reading.

    Works on any response with source nodes, ``CitationQueryEngine``'s among them (``[1]`` is the
    first source node). Asks no model. A streaming response has to be read first.

    Raises:
        QuoteError: one is not there and ``raise_on_failure`` is set.
    """
    nodes = response.source_nodes
    text = _text_of(response)
    checks = [
        *_markers(text, nodes),
        *(_quotation(found[1], nodes) for found in _QUOTED.finditer(text)),
        *(_citation(one, nodes) for one in getattr(response, "citations", None) or ()),
    ]
    failed = [one for one in checks if not one.ok]
    if failed and raise_on_failure:
        shown = "; ".join(
            f"source [{one.marker}]" if one.quotation is None else repr(one.quotation[:60])
            for one in failed[:5]
        )
        raise QuoteError(f"{len(failed)} citation(s) are not in the sources: {shown}")
    return checks


def _text_of(response: Any) -> str:
    said = getattr(response, "response_txt", None) or getattr(response, "response", None)
    return said if isinstance(said, str) else ""


def _markers(text: str, nodes: list[NodeWithScore]) -> Iterator[CitationCheck]:
    numbers = [int(one) for found in _MARKER.finditer(text) for one in re.findall(r"\d+", found[1])]
    for number in dict.fromkeys(numbers):
        there = 1 <= number <= len(nodes)
        node_id = nodes[number - 1].node.node_id if there else None
        yield CitationCheck(marker=number, quotation=None, ok=there, node_id=node_id)


def _quotation(quotation: str, nodes: list[NodeWithScore]) -> CitationCheck:
    for found in nodes:
        text = own_text(found.node)
        if is_verbatim(quotation, text):
            start, end = next(places_of(quotation, text), (None, None))
            return CitationCheck(
                marker=None, quotation=quotation, ok=True, node_id=found.node.node_id, start=start,
                end=end,
            )  # fmt: skip
    return CitationCheck(marker=None, quotation=quotation, ok=False)


def _citation(citation: Citation, nodes: list[NodeWithScore]) -> CitationCheck:
    there = citation.source < len(nodes)
    text = own_text(nodes[citation.source].node) if there else ""
    return CitationCheck(
        marker=None,
        quotation=citation.text,
        ok=there and text[citation.start : citation.end] == citation.text,
        node_id=citation.node_id,
        start=citation.start,
        end=citation.end,
    )
