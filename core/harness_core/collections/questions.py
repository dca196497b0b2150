"""The question as a prompt holds it: whole, or its beginning where the model's window is small."""

from typing import Final

from harness_core.errors import OverflowWarning, warn
from harness_core.models.budgets import budget
from harness_core.models.tokenizers import count_tokens, truncate_tokens

_FRAME: Final = 1_000
"""Tokens of the rules and the labels around what a prompt is made of, at the most."""


class QuestionCutWarning(OverflowWarning, code="question_cut"):
    """A question was too long for the model's window, and only its beginning was asked."""


def fitted(query: str, *beside: str | None, model: str, answer_tokens: int) -> str:
    """The question within a third of the room that the answer and the texts ``beside`` it leave.

    A prompt may hold it twice, and what is left is for the excerpts.

    Raises:
        BudgetError: the model's window has no room even for what stands beside it.
    """
    fixed = sum(count_tokens(text, model) for text in beside if text)
    most = budget(model, answer_tokens, fixed + _FRAME).input // 3
    if (tokens := count_tokens(query, model)) <= most:
        return query
    warn(QuestionCutWarning(
        f"the question of {tokens} tokens is over the {most} that a prompt to {model!r} has room "
        "for; its beginning is asked"
    ))  # fmt: skip
    return truncate_tokens(query, most, model=model)
