"""The one result of every reader: the answer, what it rests on, and whether anything degraded."""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

import orjson
import regex
from pydantic import BaseModel, ConfigDict, Field

from harness_core.messages import SENTINEL

Kind = Literal["verbatim", "extracted", "answer"]

CONTRADICTED = "The model reports that the document contradicts the question:"

_CITED = regex.compile(r"\[chunks? (\d{1,9}(?:, \d{1,9})*)")
_DECORATION = r"[\p{P}\p{S}\p{Z}\s]*"
_WORDS = r"NOT[_ ]IN[_ ]DOCUMENT"
_ALONE = regex.compile(rf"{_DECORATION}{_WORDS}{_DECORATION}", regex.IGNORECASE)
_OPENING = regex.compile(
    rf"""{_DECORATION}(?P<token>{_WORDS})
    [\p{{Pe}}\p{{Pf}}\p{{Pi}}"'`*_]*\s*?
    (?: [.!?:;,](?=\s) | -(?=\s) | [\p{{Pd}}--\-] | [\p{{Ps}}]
      | [\u3001\u3002\uff01\uff0c\uff0e\uff1a\uff1b\uff1f] | [\r\n\u2028\u2029] )
    """,
    regex.IGNORECASE | regex.VERBOSE | regex.VERSION1,
)


def is_not_found(text: str | None) -> bool:
    """Whether a reply says that the document does not hold the answer.

    Blank text does; so does the sentinel alone in any decoration and case, and a reply that opens
    with the sentinel as a token (capitals or underscores) and breaks off there. A sentence that
    merely mentions it does not.
    """
    stripped = (text or "").strip()
    if not stripped or _ALONE.fullmatch(stripped):
        return True
    opening = _OPENING.match(stripped)
    return opening is not None and ("_" in opening["token"] or opening["token"].isupper())


class Evidence(BaseModel):
    """One thing the answer rests on.

    ``kind`` says what ``text`` holds: ``verbatim`` chunk text, a passage a model ``extracted``, or
    a chunk's ``answer``. ``source_text`` is what an extracted passage claims to quote; ``verified``
    and ``match`` (0 to 1) say whether it does. The ``quote_*`` columns are the shadow matcher's:
    recorded, deciding nothing.
    """

    model_config = ConfigDict(frozen=True)

    chunk_id: int | None
    text: str
    page: int | float | str | None = None
    section: str | None = None
    score: float | None = None
    kind: Kind = "verbatim"
    source_text: str | None = None
    field: str | None = None
    verified: bool | None = None
    match: float | None = None
    quote_status: str | None = None
    quote_sim: float | None = None
    quote_coverage: float | None = None
    quote_edits: int | None = None
    quote_critical_ok: bool | None = None


class RunTotals(BaseModel):
    """What a slice of a trace adds up to. ``usd`` is None when a model has no price."""

    calls: int = 0
    embed_calls: int = 0
    embed_tokens: int = 0
    cached: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    errors: int = 0
    recovered: int = 0
    usd: float | None = 0.0
    models: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()
    first_error: str | None = None


class TraceView(Protocol):
    """What an answer reads off the trace it belongs to."""

    def totals(self, steps: tuple[int, int] | None = None) -> RunTotals: ...
    def export(self, steps: tuple[int, int] | None = None) -> dict[str, Any]: ...


class Answer(BaseModel):
    """What a reader returns. Look at ``partial`` first: True means that something degraded.

    ``answer`` is always one string; the sentinel ``NOT_IN_DOCUMENT`` says that the document does
    not hold the answer (test it with ``is_not_found``). ``notes`` say why it is partial, and more;
    ``chunks_used`` are the chunks that contributed. ``premise`` is present only when the question's
    premise was checked: None, or what the document states instead. ``trace_steps`` are the first
    and last step of this run in ``trace``, which may hold other runs as well.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, validate_assignment=False)

    answer: str
    reader: str
    question: str
    partial: bool = False
    notes: dict[str, Any] = Field(default_factory=dict)
    warnings: list[tuple[str, str]] = Field(default_factory=list)
    evidence: list[Evidence] = Field(default_factory=list)
    chunks_used: list[int] = Field(default_factory=list)
    signature: str = ""
    premise_checked: bool = False
    premise: str | None = None
    recipe: str | None = None
    document: dict[str, Any] | None = None
    segmentation: dict[str, Any] | None = None
    trace_steps: tuple[int, int] | None = None
    trace: Any = Field(default=None, exclude=True, repr=False)

    @property
    def found(self) -> bool:
        """Whether there is an answer at all."""
        return not is_not_found(self.answer)

    def totals(self) -> RunTotals:
        """Calls, tokens and USD of this run alone."""
        return RunTotals() if self.trace is None else self._view().totals(self.trace_steps)

    def reasons(self) -> list[str]:
        """Why the answer is partial, in plain words; empty when it is whole."""
        if not self.partial:
            return []
        first_error = self.totals().first_error
        return reasons(self.notes, first_error=first_error, evidence=self.evidence)

    def to_dict(self, *, trace: bool = True) -> dict[str, Any]:
        """The answer as JSON data, with this run's prompts and replies unless ``trace=False``."""
        plain = self.model_dump(mode="json", exclude={"premise_checked"})
        if not self.premise_checked:
            del plain["premise"]
        plain["warnings"] = [{"class": name, "message": text} for name, text in self.warnings]
        plain["notes"] = _with_arrays(plain["notes"])
        if trace and self.trace is not None:
            plain["trace"] = self._view().export(self.trace_steps)
        return plain

    def to_json(self, *, trace: bool = True) -> str:
        """``to_dict`` as JSON text."""
        plain = self.to_dict(trace=trace)
        try:
            data = orjson.dumps(plain, option=orjson.OPT_INDENT_2)
        except TypeError:  # a document may state a number of more than 64 bits
            data = orjson.dumps(_in_digits(plain), option=orjson.OPT_INDENT_2)
        return data.decode()

    def places(self, most: int = 6) -> str:
        """Where the evidence comes from: chunk, page, section; ``most`` chunks, cited first."""
        cited = {
            int(number) for group in _CITED.findall(self.answer) for number in group.split(",")
        }
        rows: dict[int | None, str] = {}
        for row in sorted(self.evidence, key=lambda row: row.chunk_id not in cited):
            rows.setdefault(row.chunk_id, _place(row))
        shown = ", ".join(list(rows.values())[:most])
        return f"{shown}, and {len(rows) - most} more" if len(rows) > most else shown

    def wording(self) -> str:
        """The answer as a person reads it."""
        if self.found:
            return self.answer
        whole = self.signature.startswith("all|") and not self.partial
        return (
            "Not found in the document."
            if whole
            else "Not found in the part of the document that was read."
        )

    def __str__(self) -> str:
        lines = [
            f"<Answer> reader={self.reader}{'  PARTIAL' if self.partial else ''}",
            f"  Question: {_clip(self.question, 160)}",
            f"  {cost_line(self.totals())}",
            "  ---",
        ]
        if self.premise:
            lines.append(CONTRADICTED)
        lines += [self.wording(), "  ---"]
        if self.evidence:
            lines.append(f"  Evidence: {self.places()}")
        lines += [f"  Partial: {reason}" for reason in self.reasons()]
        if self.warnings:
            lines.append(f"  Warnings: {len(self.warnings)}; first: {self.warnings[0][1]}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The answer in a notebook."""
        mark = ' <b style="color:#a40">partial</b>' if self.partial else ""
        rows = "".join(
            f"<li>{html.escape(_place(row))}: <q>{html.escape(_clip(row.text, 200))}</q></li>"
            for row in self.evidence[:6]
        )
        why = "".join(f"<li>{html.escape(reason)}</li>" for reason in self.reasons())
        return (
            f"<div><p><i>{html.escape(self.question)}</i> ({html.escape(self.reader)}){mark}</p>"
            f"{f'<p><i>{CONTRADICTED}</i></p>' if self.premise else ''}"
            f"<p>{html.escape(self.wording())}</p><ul>{rows}</ul>"
            f"{f'<p>Why partial:</p><ul>{why}</ul>' if why else ''}"
            f"<p><small>{html.escape(cost_line(self.totals()))}</small></p></div>"
        )

    def _view(self) -> TraceView:
        view: TraceView = self.trace
        return view


def _clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _place(row: Evidence) -> str:
    place = "document" if row.chunk_id is None else f"chunk {row.chunk_id}"
    details = [] if row.page is None else [f"p.{row.page}"]
    if row.section:
        details.append(f'"{_clip(row.section, 40)}"')
    return f"{place} ({' '.join(details)})" if details else place


def cost_line(totals: RunTotals) -> str:
    """Calls, tokens and cost in one line."""
    calls = f"{totals.calls} model call(s)"
    if totals.embed_calls:
        calls += f", {totals.embed_calls} embeddings request(s) ({totals.embed_tokens} tokens)"
    if totals.cached:
        calls += f", {totals.cached} cached"
    recovered = f" ({totals.recovered} recovered by a fallback)" if totals.recovered else ""
    return (
        f"{calls}, {totals.tokens_in} in / {totals.tokens_out} out tokens, "
        f"{totals.errors} error(s){recovered}, {money(totals)}"
    )


def money(totals: RunTotals) -> str:
    """The cost in words: unknown is said, never shown as 0."""
    if not totals.calls and not totals.embed_calls:
        return "no cost recorded"
    if totals.usd is None:
        return f"cost unknown (no registered price for {', '.join(totals.unpriced)})"
    across = f" across {', '.join(totals.models)}" if totals.models else ""
    return f"${totals.usd:.4f}{across}"


_COUNTED: Sequence[tuple[str, str]] = (
    ("failed_calls", "{} request(s) failed"),
    ("truncated_calls", "{} reply(s) were cut off at the output cap"),
    ("scoring_failures", "{} relevance score(s) failed"),
    ("failed_summaries", "{} summary(s) failed"),
    ("dropped_chunks", "{} chunk(s) did not fit"),
    ("chunks_dropped", "{} gathered chunk(s) did not fit"),
    ("call_cap_reached", "stopped at the limit of {} requests"),
    ("cost_cap_reached", "stopped at the spending limit of ${}"),
    ("token_cap_reached", "stopped at the limit of {} tokens"),
    ("output_cap_reached", "a request asked for more than {} output tokens"),
    ("model_not_allowed", "the model {} may not be used"),
    ("unpriced_model", "the model {} has no registered price"),
    ("ledger_busy", "waited {} seconds for other runs on the same budget"),
    ("cited_unknown", "cites chunks that were never sent: {}"),
    ("cited_unparsed", "citations that could not be checked: {}"),
    ("not_quoted", "{} quotation(s) were not found in what they claim to quote"),
    ("not_stating", "{} quotation(s) were found and do not state the value"),
    ("unread_pages", "pages never read: {}"),
    ("summaries_truncated", "the summaries were cut to fit"),
    ("truncations", "text was cut to fit {} time(s)"),
    ("tokens_truncated", "{} token(s) were cut to fit"),
    ("skipped", "{} section(s) were skipped by the plan"),
    ("degraded_to_bm25", "relevance fell back to word matching"),
    ("prefilter_spread", "the candidates are an evenly spread sample"),
    ("embedding_fallback", "embeddings fell back to word matching"),
    ("degraded", "fell back to a simpler method"),
    ("not_merged", "{}"),
    ("error", "first error: {}"),
    ("partial_members", "members with a partial answer: {}"),
)
_LISTS = frozenset({
    "cited_unknown", "cited_unparsed", "unread_pages", "queries", "members", "signatures",
    "answered", "partial_members", "not_reported", "unknown", "unsupported", "dropped_unverified",
    "unreadable", "unresolved", "collapsed_members", "premise_chunks", "premise_members",
})  # fmt: skip


def _with_arrays(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Notes with an array wherever a list belongs, also for one value given bare."""
    return {name: _with_array(name, value) for name, value in notes.items()}


def _with_array(name: str, value: Any) -> Any:
    if name == "member_notes" and isinstance(value, Mapping):
        return {member: _with_arrays(notes) for member, notes in value.items()}
    count = name == "answered" and not isinstance(value, str)  # of chunks; of members, their names
    return [value] if name in _LISTS and not isinstance(value, list) and not count else value


def _in_digits(value: Any) -> Any:
    """JSON data with each whole number that orjson does not hold written out."""
    if isinstance(value, dict):
        return {name: _in_digits(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_in_digits(one) for one in value]
    wide = isinstance(value, int) and value.bit_length() > 63
    return orjson.Fragment(str(value)) if wide else value


def reasons(
    notes: Mapping[str, Any],
    *,
    first_error: str | None = None,
    evidence: Iterable[Evidence] = (),
) -> list[str]:
    """The notes that make an answer partial, in plain words and a fixed order."""
    told = {"error": first_error, **{k: v for k, v in notes.items() if v is not None}}
    told |= _derived(told, evidence)
    said = [
        text.format(_shown(name, told[name]))
        for name, text in _COUNTED
        if told.get(name) not in (None, False, 0, "", [], ()) or _is_zero_cap(name, told)
    ]
    if said or not (why := told.get("reason") or told.get("stop_reason")):
        return said
    return [str(why)]


def _derived(notes: Mapping[str, Any], evidence: Iterable[Evidence]) -> dict[str, Any]:
    """What several notes say together."""
    unverified = notes.get("unverified_evidence") or 0
    # a quotation that is there word for word and still counts against the answer states no value
    silent = sum(row.verified is False and row.match == 1 for row in evidence)
    passages = "evidence_consolidated" in notes
    failed = "the evidence was not consolidated" if passages else "the answers were not merged"
    return {
        "prefilter_spread": notes.get("prefilter") == "spread",
        "not_quoted": max(unverified - silent, 0),
        "not_stating": min(silent, unverified),
        "not_merged": failed if notes.get("merge_ok") is False else None,
    }


def _is_zero_cap(name: str, notes: Mapping[str, Any]) -> bool:
    return name.endswith("_cap_reached") and notes.get(name) == 0 and notes[name] is not False


def _shown(name: str, value: Any) -> str:
    if isinstance(value, Iterable) and not isinstance(value, str):
        listed = [str(one) for one in value]
        most = 5 if name == "cited_unparsed" else 10
        return ", ".join(listed[:most]) + (", ..." if len(listed) > most else "")
    return _clip(str(value), 120)


__all__ = ["Answer", "Evidence", "RunTotals", "SENTINEL", "cost_line", "is_not_found", "reasons"]
