"""What steps add up to: the bill by model, one row per request, a summary, the printed form."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from harness_core.answer import RunTotals, cost_line
from harness_core.calls.steps import PICO, Step

if TYPE_CHECKING:
    from harness_core.calls.trace import Trace


def cost(steps: Iterable[Step]) -> list[dict[str, Any]]:
    """One row per model, sorted. Cached requests are calls, not paid ones.

    ``usd`` is None for a model without a price (also when all its requests were cached) and where
    a token count is unknown; a request that failed without sending a token costs 0.
    """
    by_model: dict[str, list[Step]] = {}
    for step in steps:
        if not step.local:
            by_model.setdefault(step.model or "", []).append(step)
    return [_cost_row(model, by_model[model]) for model in sorted(by_model)]


def _cost_row(model: str, steps: Sequence[Step]) -> dict[str, Any]:
    paid = [step for step in steps if step.paid]
    picos = [usd_pico(step) for step in steps]
    known = [pico for pico in picos if pico is not None]
    return {
        "model": model,
        "calls": len(steps),
        "paid_calls": len(paid),
        "paid_in": sum(step.tokens.input or 0 for step in paid),
        "paid_out": sum(step.tokens.output or 0 for step in paid),
        "usd": sum(known) / PICO if len(known) == len(picos) else None,
    }


def usd_pico(step: Step) -> int | None:
    """What a step cost, in pico-dollars; None when no price is known."""
    if step.cached:
        return None if step.budget_pico is None else 0
    if not step.ok and not step.tokens.input and not step.tokens.output:
        return 0
    return step.budget_pico


def errors(steps: Iterable[Step]) -> list[dict[str, Any]]:
    """One entry per failed request."""
    return [
        {"step": s.step, "label": s.label, "error": s.error or "", "recovered": s.recovered}
        for s in steps
        if not s.local and not s.ok
    ]


def rows(steps: Iterable[Step]) -> list[dict[str, Any]]:
    """One row per request; ``usd`` adds up to the cost table."""
    return [_row(step) for step in steps if not step.local]


def _row(step: Step) -> dict[str, Any]:
    pico = usd_pico(step)
    return {
        "step": step.step,
        "document": step.source,
        "recipe": step.recipe,
        "stage": step.label,
        "model": step.model,
        "ok": step.ok,
        "cached": step.cached,
        "tokens_in": step.tokens.input,
        "tokens_out": step.tokens.output,
        "usd": None if pico is None else pico / PICO,
        "seconds": step.seconds,
        "error": step.error,
        "prompt": "\n\n".join(f"[{m.role}] {m.content}" for m in step.prompt),
        "reply": step.response,
        "effort": step.params.get("effort"),
    }


def totals(steps: Sequence[Step]) -> RunTotals:
    """What the steps of one run add up to."""
    asked = [step for step in steps if not step.local]
    chat = [step for step in asked if step.kind == "chat"]
    failed = [step for step in asked if not step.ok]
    bill = cost(asked)
    unpriced = tuple(row["model"] for row in bill if row["usd"] is None)
    first = next((s for s in failed if not s.recovered), failed[0] if failed else None)
    return RunTotals(
        calls=len(chat),
        embed_calls=len(asked) - len(chat),
        embed_tokens=sum(s.tokens.input or 0 for s in asked if s.kind == "embedding"),
        cached=sum(step.cached for step in asked),
        tokens_in=sum(step.tokens.input or 0 for step in chat),
        tokens_out=sum(step.tokens.output or 0 for step in chat),
        errors=len(failed),
        recovered=sum(step.recovered for step in failed),
        usd=None if unpriced else sum(usd_pico(step) or 0 for step in asked) / PICO,
        models=tuple(row["model"] for row in bill),
        unpriced=unpriced,
        first_error=first.error if first else None,
    )


def summary(trace: "Trace", window: tuple[int, int] | None = None) -> dict[str, Any]:
    """The totals of a trace, or of the steps in a window of it."""
    steps = trace.window(window)
    asked = [step for step in steps if not step.local]
    known = totals(steps)
    estimated = sum(step.tokens.provenance == "estimated" for step in asked)
    return {
        "run_id": trace.run_id,
        "calls": trace.calls if window is None else len(asked),
        "cached": known.cached,
        "steps": len(steps),
        "tokens_in": known.tokens_in,
        "tokens_out": known.tokens_out,
        "errors": known.errors,
        "elapsed_s": _elapsed(asked),
        "embed_calls": known.embed_calls,
        "embed_tokens": known.embed_tokens,
        "usage_estimated": round(estimated / len(asked), 4) if asked else 0.0,
        "usd": known.usd,
        "refusals": len(trace.refusals),
        "incomplete": trace.incomplete,
    }


def _elapsed(steps: Sequence[Step]) -> float:
    times = [s for step in steps for s in (step.started_utc, step.ended_utc) if s]
    if not times:
        return 0.0
    ends = [datetime.fromisoformat(moment) for moment in (min(times), max(times))]
    return round((ends[1] - ends[0]).total_seconds(), 2)


def printed(trace: "Trace") -> str:
    """A trace as a person reads it."""
    steps = trace.steps
    known = totals(steps)
    labels = Counter(step.label for step in steps)
    lines = [
        f"<Trace {trace.run_id}>  {len(steps)} steps, {cost_line(known)}",
        "  labels: " + (", ".join(f"{name} {n}" for name, n in labels.items()) or "none"),
    ]
    actor = ", ".join(f"{name} = {value}" for name, value in trace.actor.items() if value)
    if actor:
        lines.append(f"  actor: {actor}")
    lines.append(f"  started: {trace.started}")
    if share := trace.summary()["usage_estimated"]:
        lines.append(f"  {share:.0%} of the requests have estimated token counts")
    if trace.budget_stop:
        lines.append(f"  stopped by a limit: {trace.stop_reason}")
    if trace.incomplete:
        lines.append(f"  incomplete: {trace.lost_holds} request(s) sent without a recorded reply")
    if known.first_error:
        lines.append(f"  first error: {known.first_error[:160]}")
    return "\n".join(lines)
