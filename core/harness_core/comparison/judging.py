"""Whether an answer is right, by strings it must hold or a function of it."""

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from harness_core.answer import Answer
from harness_core.errors import BadCorrectWarning, BadSettingError, warn

Correct: TypeAlias = str | Iterable[str] | Callable[[Answer], bool | None]
Judge: TypeAlias = Callable[[Answer], bool | None]


def judge_of(correct: Correct) -> Judge:
    """What tells a right answer (True) from a wrong one (False); None is unknown.

    Strings must all occur, whatever their case and white space. A function is given the answer;
    one that fails leaves it unknown, with ``BadCorrectWarning``. A read that a limit stopped
    before it found anything is unknown.

    Raises:
        BadSettingError: neither strings nor a function.
    """
    told = correct if callable(correct) else _holding(correct)

    def judge(answer: Answer) -> bool | None:
        if "stop_reason" in answer.notes and not answer.found:
            return None
        try:
            verdict = told(answer)
            return None if verdict is None else bool(verdict)
        except Exception as what:  # noqa: BLE001 - a user's function may fail in any way
            warn(BadCorrectWarning(
                f"correct failed on the answer of {answer.recipe!r}, so whether it is right is "
                f"unknown: {type(what).__name__}: {what}"
            ))  # fmt: skip
            return None

    return judge


def _holding(correct: Any) -> Judge:
    strings = [correct] if isinstance(correct, str) else correct
    wanted = [_folded(one) for one in strings] if _are_texts(strings) else []
    if not wanted or not all(wanted):
        raise BadSettingError(
            f"correct is one or more non-blank strings, or a function of an answer, not {correct!r}"
        )
    return lambda answer: all(one in _folded(answer.answer) for one in wanted)


def _are_texts(strings: Any) -> bool:
    return isinstance(strings, (list, tuple, set)) and all(isinstance(s, str) for s in strings)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def per_correct(usd: float | None, correct: bool | None) -> float | None:
    """USD of a right answer: infinite for a wrong one that cost something, else None: unknown."""
    if correct is None or usd is None:
        return None
    if correct:
        return usd
    return math.inf if usd > 0 else None
