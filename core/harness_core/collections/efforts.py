"""What each effort reads, and what it may take: data, so that a deployment can change it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from harness_core.calls.governor import Governor
from harness_core.config import setting
from harness_core.reading.spec import ReadSpec

VERSION: Final = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One effort: how many pieces are retrieved, which reader reads them, under which limits.

    ``whole_characters`` is up to which everything visible is read instead of retrieved;
    ``per_file`` how many retrieved pieces one file may give, so that no file drives out the others.
    ``allow_unpriced`` lets a model without a price run under the spending limit.
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
    width: int = 4
    allow_unpriced: bool = False

    def spec(self, *, instructions: str | None, conversation: str | None) -> ReadSpec:
        """The settings of the read."""
        return ReadSpec(
            self.reader,
            cite=True,
            top_k=self.used,
            rerank_candidates=self.candidates,
            max_answer_tokens=self.answer_tokens,
            context_order=self.context_order,
            verify=self.verify,
            premise=self.premise,
            max_concurrency=self.width,
            instructions=instructions or None,
            conversation=conversation,
        )

    def governor(self) -> Governor:
        """The limits of one request; a lower limit of the process stays in force."""
        calls, cost = setting("max_calls"), setting("max_cost_usd")
        return Governor(
            max_calls=self.max_calls if calls is None else min(calls, self.max_calls),
            max_cost_usd=self.max_cost_usd if cost is None else min(cost, self.max_cost_usd),
            allow_unpriced=self.allow_unpriced,
        )


MEDIUM: Final = Plan(
    reader="stuff", candidates=30, used=8, per_file=4, whole_characters=18_000, whole_pieces=60,
    answer_tokens=900, context_order="relevance", verify=False, premise=False, max_calls=3,
    max_cost_usd=0.05, credits=1,
)  # fmt: skip
HIGH: Final = Plan(
    reader="rerank", candidates=12, used=8, per_file=6, whole_characters=18_000, whole_pieces=12,
    answer_tokens=1500, context_order="edges", verify=True, premise=True, max_calls=15,
    max_cost_usd=0.30, credits=2,
)  # fmt: skip
EFFORTS: Final[Mapping[str, Plan]] = {"medium": MEDIUM, "high": HIGH}
