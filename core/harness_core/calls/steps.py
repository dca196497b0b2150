"""One line of a trace: a request with what was asked, sent and answered, or a local step."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal

from harness_core.errors import TraceError
from harness_core.messages import Message, Usage
from harness_core.models.prices import price

StepKind = Literal["chat", "embedding", "local"]
PICO = 10**12


@dataclass(slots=True, kw_only=True)
class Step:
    """One step. ``step`` is its number; a request made inside another has ``12.1``.

    ``model`` is the model asked for, by which the step is priced and replayed; ``served_model`` is
    the provider's name. ``budget_pico`` is what it counted against the spending limit, None when
    no price is known, and ``bound_pico`` what was held for it. ``detail`` belongs to local steps,
    ``state`` to those that carry one.
    """

    step: str
    label: str
    kind: StepKind = "chat"
    started_utc: str = ""
    ended_utc: str = ""
    seconds: float = 0.0
    model: str | None = None
    ok: bool = True
    cached: bool = False
    cancelled: bool = False
    prompt: tuple[Message, ...] = ()
    response: str = ""
    error: str | None = None
    status: int | None = None
    tokens: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    params_sent: Mapping[str, Any] = field(default_factory=dict)
    served_model: str | None = None
    response_id: str | None = None
    fingerprint: str | None = None
    attempts: int = 0
    replay_key: str = ""
    draw_index: int = 0
    budget_pico: int | None = 0
    bound_pico: int | None = None
    recovered: bool = False
    source: str | None = None
    recipe: str | None = None
    state: Mapping[str, Any] | None = None
    detail: Mapping[str, Any] | None = None
    vectors: list[list[float]] | None = None
    raw: Any = None

    @property
    def local(self) -> bool:
        """Whether nothing was asked of a model."""
        return self.kind == "local"

    @property
    def order(self) -> tuple[int, ...]:
        """Its place in the trace: 12.1 comes after 12 and before 13."""
        return order(self.step)

    @property
    def paid(self) -> bool:
        """Whether it was issued to a provider, rather than answered from a store."""
        return not self.local and not self.cached

    def counts(self) -> dict[str, int]:
        """What it adds to a ledger."""
        if self.local:
            return {}
        tokens = (self.tokens.input or 0) + (self.tokens.output or 0)
        money = "replayed" if self.cached else "spent"
        return {"calls": 1, "tokens": tokens, money: self.budget_pico or 0}

    def as_json(self) -> dict[str, Any]:
        """The step as it stands in a trace file: what is empty is left out."""
        if self.local:
            kept = ("step", "label", "kind", "started_utc", "source", "recipe", "detail")
            return {k: getattr(self, k) for k in kept if getattr(self, k) is not None}
        plain: dict[str, Any] = {}
        for name in _NAMES:
            value = getattr(self, name)
            if value is not None and name not in _SPECIAL:
                plain[name] = value
        plain["prompt"] = [message.as_json() for message in self.prompt]
        plain["tokens"] = {k: v for k, v in _usage(self.tokens).items() if v is not None}
        plain["budget_usd"] = None if self.budget_pico is None else self.budget_pico / PICO
        if self.bound_pico is not None:
            plain["bound_usd"] = self.bound_pico / PICO
        for name in ("cancelled", "recovered", "draw_index"):
            if not plain[name]:
                del plain[name]
        return plain

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Step":
        """The step a trace file holds.

        Raises:
            TraceError: the line is no step.
        """
        try:
            values = {k: v for k, v in stored.items() if k in _NAMES_SET}
            values["step"] = str(stored["step"])
            values["label"] = str(stored["label"])
            values["prompt"] = tuple(
                Message(m["role"], m["content"], m.get("more")) for m in stored.get("prompt", ())
            )
            values["tokens"] = Usage(**stored.get("tokens", {}))
            order(values["step"])
            values["bound_pico"] = _pico(stored.get("bound_usd"))
            step = cls(**values)
            step.budget_pico = (
                _pico(stored["budget_usd"]) if "budget_usd" in stored else _priced_now(step)
            )
            return step
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise TraceError(f"a step cannot be read: {type(error).__name__}: {error}") from error


_NAMES = tuple(f.name for f in fields(Step))
_SPECIAL = frozenset({"prompt", "tokens", "budget_pico", "bound_pico"})
_NAMES_SET = frozenset(_NAMES) - _SPECIAL


def order(number: str) -> tuple[int, ...]:
    """A step number as something to sort by."""
    return tuple(int(part) for part in number.split("."))


def now() -> str:
    """The time, ISO 8601 UTC with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


@lru_cache(maxsize=64)
def public_url(url: str) -> str:
    """``url`` without a name, a password and a query: those can hold credentials."""
    return re.sub(r"[?#].*", "", re.sub(r"//[^/?#]*@", "//", url))


def _pico(usd: float | None) -> int | None:
    return None if usd is None else round(float(usd) * PICO)


def _priced_now(step: Step) -> int | None:
    """What a step that was saved without its price counts, at the prices known here."""
    if step.local or step.cached or not step.model:
        return 0
    return price(step.model, step.tokens)


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input": usage.input,
        "output": usage.output,
        "reasoning": usage.reasoning,
        "cached_input": usage.cached_input,
        "provenance": usage.provenance,
    }
