"""The limits of a run, and what a request that would pass one is told."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from harness_core.config import limit, names, setting
from harness_core.errors import BadSettingError
from harness_core.models.prices import to_pico

Reason = Literal["model", "output", "calls", "unpriced", "tokens", "cost", "ledger_busy"]
Bound = Literal["margin", "strict"]


class _Unset:
    """A governor field that was left out and follows its setting."""

    def __repr__(self) -> str:
        return "follows the setting"


UNSET: Final[Any] = _Unset()

LIMIT_NAMES = (
    "max_calls",
    "max_cost_usd",
    "max_tokens_total",
    "max_output_tokens",
    "allowed_models",
    "allow_unpriced",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits in force at one moment; None is no limit. Money in pico-dollars."""

    max_calls: int | None = None
    max_pico: int | None = None
    max_cost_usd: float | None = None
    max_tokens_total: int | None = None
    max_output_tokens: int | None = None
    allowed_models: frozenset[str] | None = None
    allow_unpriced: bool = False
    strict: bool = False

    def as_json(self) -> dict[str, Any]:
        """The limits by their public names."""
        allowed = self.allowed_models
        return {
            "max_calls": self.max_calls,
            "max_cost_usd": self.max_cost_usd,
            "max_tokens_total": self.max_tokens_total,
            "max_output_tokens": self.max_output_tokens,
            "allowed_models": None if allowed is None else sorted(allowed),
            "allow_unpriced": self.allow_unpriced,
        }

    def at_most(self, reason: str, recorded: dict[str, Any]) -> bool:
        """Whether the limit behind ``reason`` is no higher than the recorded one."""
        mine, theirs = self.as_json(), recorded
        match reason:
            case "model":
                allowed = theirs.get("allowed_models")
                return self.allowed_models is not None and self.allowed_models <= set(allowed or ())
            case "unpriced":
                return mine["max_cost_usd"] is not None and not mine["allow_unpriced"]
            case "ledger_busy":
                return True
        name = _LIMIT_OF[reason]
        return mine[name] is not None and theirs.get(name) is not None and (
            mine[name] <= theirs[name]
        )  # fmt: skip


_LIMIT_OF = {
    "calls": "max_calls",
    "cost": "max_cost_usd",
    "tokens": "max_tokens_total",
    "output": "max_output_tokens",
}


class Governor:
    """The six limits of a run. A field left out follows its setting; None is no limit.

    Every request is checked before it is sent, against the most it could cost, so a run ends at or
    under its limits. ``bound="margin"`` counts a prompt with the tokenizer in force and the
    setting ``safety_margin``; ``"strict"`` by its UTF-8 bytes, which never undercounts.
    ``on_refusal="raise"`` raises ``RequestRefused`` for every refused request.

    Raises:
        BadSettingError: a limit that cannot be compared, or an unknown choice.
    """

    def __init__(
        self,
        *,
        max_calls: int | None = UNSET,
        max_cost_usd: float | None = UNSET,
        max_tokens_total: int | None = UNSET,
        max_output_tokens: int | None = UNSET,
        allowed_models: str | Iterable[str] | None = UNSET,
        allow_unpriced: bool = UNSET,
        bound: Bound = "margin",
        on_refusal: Literal["reply", "raise"] = "reply",
    ) -> None:
        given = {
            "max_calls": max_calls,
            "max_cost_usd": max_cost_usd,
            "max_tokens_total": max_tokens_total,
            "max_output_tokens": max_output_tokens,
        }
        self._given: dict[str, Any] = {
            name: value if value is UNSET else limit(name, value, whole=name != "max_cost_usd")
            for name, value in given.items()
        }
        self._given["allowed_models"] = (
            allowed_models if allowed_models is UNSET else names("allowed_models", allowed_models)
        )
        self._given["allow_unpriced"] = allow_unpriced
        if bound not in ("margin", "strict"):
            raise BadSettingError(f"bound is margin or strict, not {bound!r}")
        if on_refusal not in ("reply", "raise"):
            raise BadSettingError(f"on_refusal is reply or raise, not {on_refusal!r}")
        self.bound = bound
        self.on_refusal = on_refusal
        self._known: tuple[tuple[Any, ...], Limits] = ((), Limits())
        self.shared_trace: Any = None  # set by the first wrapper that is given this governor

    def limits(self) -> Limits:
        """The limits in force now."""
        values = tuple(
            [setting(name) if value is UNSET else value for name, value in self._given.items()]
        )
        known = self._known
        if known[0] != values:
            known = self._known = (values, self._read(values))
        return known[1]

    def _read(self, values: tuple[Any, ...]) -> Limits:
        given = dict(zip(self._given, values, strict=True))
        usd = given["max_cost_usd"]
        return Limits(
            max_pico=None if usd is None else to_pico(usd, down=True),
            strict=self.bound == "strict",
            **given,
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in self._given.items() if v is not UNSET)
        return f"Governor({shown})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a request was not sent: stored whole on the trace, so that a replay can repeat it."""

    reason: Reason
    message: str
    label: str
    model: str
    replay_key: str = ""
    draw_index: int = 0
    bound_tokens: int = 0
    bound_pico: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The refusal as it stands in a trace file; money in USD."""
        bound = None if self.bound_pico is None else self.bound_pico / 1e12
        return {
            "reason": self.reason,
            "message": self.message,
            "label": self.label,
            "model": self.model,
            "replay_key": self.replay_key,
            "draw_index": self.draw_index,
            "bound_tokens": self.bound_tokens,
            "bound_usd": bound,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Refusal":
        """The refusal a trace file holds."""
        bound = stored.get("bound_usd")
        return cls(
            reason=stored["reason"],
            message=stored.get("message", ""),
            label=stored.get("label", ""),
            model=stored.get("model", ""),
            replay_key=stored.get("replay_key", ""),
            draw_index=stored.get("draw_index", 0),
            bound_tokens=stored.get("bound_tokens", 0),
            bound_pico=None if bound is None else round(bound * 1e12),
        )


def dollars(amount: float) -> str:
    """USD in a message: two decimals, below one cent two significant digits, no exponent."""
    if amount >= 0.01 or amount == 0:
        return f"{amount:.2f}"
    places = max(2, 1 - _magnitude(amount))
    return f"{amount:.{places}f}".rstrip("0") or "0"


def plain(amount: float) -> str:
    """A limit as it was given, without exponent."""
    return f"{amount:.12f}".rstrip("0").rstrip(".")


def _magnitude(amount: float) -> int:
    import math

    return math.floor(math.log10(amount))
