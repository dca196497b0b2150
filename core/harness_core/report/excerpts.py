"""Evidence in a page: each quotation marked in the excerpt that it comes from."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from harness_core.checks.alignment import TooLongError, closest
from harness_core.report.markup import text

_ELISION = re.compile(r"\s*(?:\[?\.{3,}\]?|\[?…\]?)\s*")
_PIECE = re.compile(r"[\"“”«»]|\[chunk[^\]]*\]|(?<=[.!?])\s+|\n+")
_SHORTEST = 12
_AROUND = 280
_PLAIN_MOST = 700
_Spans: TypeAlias = list[tuple[int, int]]


def evidence_html(answer: Mapping[str, Any], prompts: Sequence[str]) -> str:
    """What an answer rests on, as a list; ``prompts`` are searched for excerpts it lacks."""
    rows = [row for row in answer.get("evidence") or () if isinstance(row, Mapping)]
    items = "".join(_item(row, str(answer.get("answer", "")), prompts) for row in rows)
    return f'<ol class="evidence">{items}</ol>' if items else "<p>No evidence was recorded.</p>"


def _item(row: Mapping[str, Any], answer: str, prompts: Sequence[str]) -> str:
    quoted, excerpt = str(row.get("text") or ""), row.get("source_text")
    if row.get("kind") != "extracted":
        excerpt, spans = quoted, _said_in(quoted, answer) if row.get("kind") == "verbatim" else []
    else:
        excerpt = str(excerpt or next((p for p in prompts if _spans(quoted, p)), quoted))
        spans = _spans(quoted, excerpt) or _near(quoted, excerpt)
    return (
        f'<li><p class="place">{text(_place(row))} {_verdict(row)}</p>'
        f'<blockquote dir="auto">{_marked(excerpt, spans)}</blockquote></li>'
    )


def _place(row: Mapping[str, Any]) -> str:
    chunk = row.get("chunk_id")
    parts = ["Document" if chunk is None else f"Chunk {chunk}"]
    parts += [f"page {row['page']}"] if row.get("page") is not None else []
    parts += [str(row[name]) for name in ("section", "field") if row.get(name)]
    return " · ".join(parts)


def _verdict(row: Mapping[str, Any]) -> str:
    verified, match = row.get("verified"), row.get("match")
    if verified is None:
        return ""
    if verified:
        return '<span class="badge good">quotation verified</span>'
    share = f", {match:.0%} of it found" if isinstance(match, float) and match < 1 else ""
    return f'<span class="badge bad">quotation not verified{share}</span>'


def _said_in(excerpt: str, answer: str) -> _Spans:
    """Where the excerpt holds a sentence or a quotation of the answer."""
    pieces = (piece.strip() for piece in _PIECE.split(answer) if piece)
    return [span for piece in pieces if len(piece) >= _SHORTEST for span in _spans(piece, excerpt)]


def _spans(quotation: str, excerpt: str) -> _Spans:
    """Where the pieces of a quotation stand, spaces and case aside; empty when one is missing."""
    found: _Spans = []
    for piece in _ELISION.split(quotation):
        if words := piece.split():
            at = re.search(r"\s+".join(map(re.escape, words)), excerpt, re.IGNORECASE)
            if at is None:
                return []
            found.append(at.span())
    return found


def _near(quotation: str, excerpt: str) -> _Spans:
    try:
        stretch = closest(quotation, excerpt)
    except TooLongError:
        return []
    return [] if stretch is None else [(stretch.start, stretch.stop)]


def _marked(excerpt: str, spans: _Spans) -> str:
    joined = list(_joined(spans))
    if not joined:
        cut = excerpt[:_PLAIN_MOST]
        return text(cut) + ("…" if len(excerpt) > len(cut) else "")
    start = max(0, joined[0][0] - _AROUND)
    stop = min(len(excerpt), joined[-1][1] + _AROUND)
    parts = ["…" if start else ""]
    for first, last in joined:
        parts += [text(excerpt[start:first]), f"<mark>{text(excerpt[first:last])}</mark>"]
        start = last
    return "".join([*parts, text(excerpt[start:stop]), "…" if stop < len(excerpt) else ""])


def _joined(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Spans in order, those that touch as one."""
    last: tuple[int, int] | None = None
    for start, stop in sorted(spans):
        if last is not None and start <= last[1]:
            last = (last[0], max(last[1], stop))
            continue
        if last is not None:
            yield last
        last = (start, stop)
    if last is not None:
        yield last
