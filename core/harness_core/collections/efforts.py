"""What each effort reads, and what it may take: data, so that a deployment can change it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from harness_core.calls.governor import Governor
from harness_core.config import setting
from harness_core.reading.spec import ReadSpec

VERSION: Final = "2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One effort: how many pieces are retrieved, which reader reads them, under which limits.

    Up to ``whole_characters`` and ``whole_pieces`` everything visible is read. Above it ``used``
    pieces are chosen from the ``candidates`` that rank best, or as many as are to be ``scored`` by
    the model first; ``mmr`` (1: relevance alone) weighs how they repeat each other where pieces
    have vectors. ``per_file`` is how many one file may give, so that no file drives out the others,
    counting the ``neighbours`` on either side that come with a piece. ``input_tokens`` bounds them
    all. ``subqueries`` is how many further lines a question of several parts is searched by,
    ``continuations`` how often an answer that stopped at its cap may go on. ``reasoning`` is the
    effort of reasoning models, one or by stage. ``allow_unpriced`` lets a model without a price run
    under the spending limit.
    """

    reader: str
    candidates: int
    used: int
    per_file: int
    whole_characters: int
    whole_pieces: int
    answer_tokens: int
    context_order: str
    verify: bool
    premise: bool
    max_calls: int
    max_cost_usd: float
    credits: int
    scored: int = 0
    mmr: float = 1.0
    neighbours: int = 0
    input_tokens: int = 24_000
    subqueries: int = 0
    continuations: int = 0
    reasoning: str | Mapping[str, str] | None = None
    width: int = 4
    allow_unpriced: bool = False

    @property
    def taken(self) -> int:
        """How many pieces a reader is given."""
        return self.scored or self.used

    def spec(self, *, instructions: str | None, conversation: str | None) -> ReadSpec:
        """The settings of the read."""
        return ReadSpec(
            self.reader,
            cite=True,
            top_k=self.used,
            rerank_candidates=self.taken,
            max_answer_tokens=self.answer_tokens,
            context_order=self.context_order,
            verify=self.verify,
            premise=self.premise,
            max_concurrency=self.width,
            effort=self.reasoning,
            instructions=instructions or None,
            conversation=conversation,
        )

    def governor(self, *, embeds: bool = False) -> Governor:
        """The limits of one request; a lower limit of the process stays in force.

        ``embeds`` adds the request that embeds the question.
        """
        calls, cost = setting("max_calls"), setting("max_cost_usd")
        most = self.max_calls + embeds
        return Governor(
            max_calls=most if calls is None else min(calls, most),
            max_cost_usd=self.max_cost_usd if cost is None else min(cost, self.max_cost_usd),
            allow_unpriced=self.allow_unpriced,
        )


MEDIUM: Final = Plan(
    reader="stuff", candidates=30, used=8, mmr=0.8, per_file=4, whole_characters=18_000,
    whole_pieces=60, input_tokens=8_000, answer_tokens=900, context_order="relevance",
    verify=False, premise=False, reasoning="low", max_calls=3, max_cost_usd=0.05, credits=1,
)  # fmt: skip
HIGH: Final = Plan(
    reader="rerank", candidates=30, scored=12, used=8, mmr=0.7, per_file=6, neighbours=1,
    whole_characters=18_000, whole_pieces=12, input_tokens=24_000, answer_tokens=1500,
    context_order="edges", verify=True, premise=True, subqueries=2, continuations=1,
    reasoning={"default": "low", "rerank.answer": "medium"}, max_calls=16, max_cost_usd=0.30,
    credits=2,
)  # fmt: skip
SKIM: Final = replace(
    HIGH, reader="skim", scored=0, used=24, whole_pieces=24, neighbours=0, max_calls=30,
    reasoning={"default": "low", "skim.answer": "medium"},
)  # fmt: skip
"""``high`` by checked quotations, one request for each of at most 24 pieces."""
EFFORTS: Final[Mapping[str, Plan]] = {"medium": MEDIUM, "high": HIGH}
