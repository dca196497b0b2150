"""What a comparison gives back: the answers, and a row of figures for each recipe."""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness_core.answer import Answer
from harness_core.calls import accounts
from harness_core.calls.steps import Step
from harness_core.calls.trace import Trace
from harness_core.comparison.judging import Judge, per_correct
from harness_core.comparison.legs import Leg
from harness_core.documents.types import Document
from harness_core.reading.registry import reader_signature
from harness_core.recipes import Recipe

_PRINTED = (
    "recipe", "segmenter", "chunks", "reader", "calls", "tokens_in", "tokens_out", "usd", "correct",
    "usd_per_correct", "partial",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What several recipes made of one question about one document.

    ``answers`` are by recipe name; each one's own ``trace`` holds its recipe's segmentation and
    read alone. ``trace`` is the whole account: what the comparison cost. ``rows()`` has one row per
    recipe, charged as if it had run alone, so its ``usd`` may add up to more than ``trace`` spent.
    ``document`` is the one that the first recipe read.
    """

    question: str
    document: Document
    trace: Trace
    answers: dict[str, Answer]
    table: tuple[Mapping[str, Any], ...] = field(repr=False)

    def rows(self) -> list[dict[str, Any]]:
        """One row per recipe: how it read, what it found, what it cost.

        ``usd`` is None where a model has no price; ``usd_estimated`` is the share (0 to 1) of it
        spent on requests whose tokens were estimated here. ``correct`` and ``usd_per_correct`` are
        there when ``correct`` was given (infinite: wrong, at a cost; None: unknown), ``premise``
        when it was checked.
        """
        return [dict(row) for row in self.table]

    def __str__(self) -> str:
        lines = [f"<Comparison> {len(self.table)} recipe(s)", f"  Question: {self.question}"]
        lines += [f"  {line}".rstrip() for line in _aligned(self._printed())]
        lines += [f"  {name}: {said}" for name, said in self._said(160).items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The table in a notebook, with each answer."""
        head, *rows = self._printed()
        said = self._said(300).values()
        body = "".join(_html_row("td", [*row, one]) for row, one in zip(rows, said, strict=True))
        table = f"<table>{_html_row('th', [*head, 'answer'])}{body}</table>"
        return f"<div><p><i>{html.escape(self.question)}</i></p>{table}</div>"

    def _printed(self) -> list[list[str]]:
        columns = [name for name in _PRINTED if name in self.table[0]]
        return [columns, *([_shown(name, row[name]) for name in columns] for row in self.table)]

    def _said(self, most: int) -> dict[str, str]:
        """What each recipe answered, and the error it met or why it is partial."""
        errors = {row["recipe"]: row["error"] for row in self.table}
        said = {}
        for name, answer in self.answers.items():
            said[name] = _line(answer.wording(), most)
            if errors[name]:
                said[name] += f" [error: {_line(errors[name], most)}]"
            elif answer.partial:
                said[name] += f" [partial: {_line('; '.join(answer.reasons()), most)}]"
        return said


def row_of(leg: Leg, answer: Answer, judge: Judge | None, *, premise: bool) -> dict[str, Any]:
    """The row of one recipe, its figures read off its own trace."""
    recipe, steps = leg.entry.recipe, leg.branch.steps
    spent = accounts.totals(steps)
    row: dict[str, Any] = {
        "recipe": leg.entry.name,
        "segmenter": recipe.segment.method if leg.chunks is None else leg.chunks.method,
        "chunks": None if leg.chunks is None else len(leg.chunks),
        "reader": recipe.read.reader,
        "signature": reader_signature(recipe.read),
        "settings": _settings(recipe),
        "partial": answer.partial,
        "chunks_used": len(answer.chunks_used),
        "answer_chars": len(answer.answer),
        "not_found": not answer.found,
    }
    if premise:
        row["premise"] = answer.premise
    row |= {
        "calls": leg.branch.calls,
        "tokens_in": spent.tokens_in,
        "tokens_out": spent.tokens_out,
        "usd": spent.usd,
        "usd_estimated": _estimated(steps, spent.usd),
    }
    if judge is not None:
        correct = judge(answer)
        row |= {"correct": correct, "usd_per_correct": per_correct(spent.usd, correct)}
    row["error"] = answer.notes.get("error") or _first_error(steps)
    return row


def _settings(recipe: Recipe) -> str:
    """What differs from the defaults, as text."""
    read, cut = recipe.read.given(), recipe.segment.changed()
    told = {**{k: v for k, v in cut.items() if k != "method"}, **read}
    return ", ".join(f"{name}={value}" for name, value in told.items() if name != "reader")


def _estimated(steps: Iterable[Step], usd: float | None) -> float | None:
    if usd is None:
        return None
    paid = [(step, accounts.usd_pico(step) or 0) for step in steps if not step.local]
    guessed = sum(pico for step, pico in paid if step.tokens.provenance == "estimated")
    return round(guessed / max(sum(pico for _, pico in paid), 1), 4)


def _first_error(steps: Iterable[Step]) -> str | None:
    failed = (s for s in steps if not s.local and not s.ok and not s.recovered)
    return next((step.error for step in failed), None)


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "unknown" if name in ("usd", "correct", "usd_per_correct") else "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return _line(str(value), 60)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows]


def _html_row(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _line(text: str, most: int) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= most else folded[: most - 1] + "…"
