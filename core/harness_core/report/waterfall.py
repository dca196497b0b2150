"""When each request ran and what it cost: a lane per stage, drawn without a script."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness_core.calls.accounts import usd_pico
from harness_core.calls.steps import PICO, Step
from harness_core.report.markup import plural, text, usd
from harness_core.report.spans import nanoseconds

_SHADES = 5
_WIDTH = 1000
_THINNEST = 6.0


@dataclass(frozen=True, slots=True)
class _Bar:
    step: Step
    start: float
    seconds: float


def waterfall_html(requests: Sequence[Step]) -> str:
    """A section per stage label, in the order of their first requests, with a bar per request."""
    bars = list(_bars(requests))
    if not bars:
        return "<p>No request was made.</p>"
    begin = min(bar.start for bar in bars)
    scale = _WIDTH / (max(bar.start + bar.seconds for bar in bars) - begin or 1.0)
    dearest = max((usd_pico(step) or 0 for step in requests), default=0)
    stages: dict[str, list[_Bar]] = {}
    for bar in bars:
        stages.setdefault(bar.step.label, []).append(bar)
    lanes = (_stage(label, lane, begin, scale, dearest) for label, lane in stages.items())
    return _legend(dearest) + "".join(lanes)


def _bars(requests: Sequence[Step]) -> Iterator[_Bar]:
    """Where each request stands; without times one after the other."""
    timed = all(step.started_utc for step in requests)
    clock = 0.0
    for step in requests:
        start = nanoseconds(step.started_utc) / 1e9 if timed else clock
        seconds = step.seconds if timed else step.seconds or 1.0
        clock += seconds
        yield _Bar(step, start, seconds)


def _stage(label: str, lane: Sequence[_Bar], begin: float, scale: float, dearest: int) -> str:
    picos = [usd_pico(bar.step) for bar in lane]
    known = [pico for pico in picos if pico is not None]
    total = usd(sum(known) / PICO if len(known) == len(picos) else None)
    rows = "".join(
        f'<li class="bar"><a href="#step-{text(bar.step.step)}">{text(bar.step.step)}</a>'
        f"{_svg(bar, begin, scale, dearest)}<span>{text(_cost(bar.step))}</span></li>"
        for bar in lane
    )
    return (
        f'<section class="stage"><h3>{text(label)} <small>{plural(len(lane), "request")}, '
        f"{text(total)}</small></h3><ol>{rows}</ol></section>"
    )


def _svg(bar: _Bar, begin: float, scale: float, dearest: int) -> str:
    width = max(bar.seconds * scale, _THINNEST)
    left = min((bar.start - begin) * scale, _WIDTH - width)
    return (
        f'<svg viewBox="0 0 {_WIDTH} 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="{_shade(bar.step, dearest)}" x="{left:.1f}" y="0" width="{width:.1f}" '
        'height="10"/></svg>'
    )


def _shade(step: Step, dearest: int) -> str:
    """The class that colours a bar: failed, unknown, free, or one of five shades by cost."""
    if not step.ok:
        return "failed"
    if (pico := usd_pico(step)) is None:
        return "unknown"
    return "free" if not pico else f"shade{min(_SHADES, 1 + pico * _SHADES // (dearest + 1))}"


def _cost(step: Step) -> str:
    if not step.ok:
        return "failed"
    pico = usd_pico(step)
    return "cached" if step.cached else usd(None if pico is None else pico / PICO)


def _legend(dearest: int) -> str:
    keys = [("free", "free or cached"), ("unknown", "price unknown"), ("failed", "failed")]
    if dearest:
        keys = [("shade1", "cheap"), ("shade3", ""), (f"shade{_SHADES}", f"{usd(dearest / PICO)}"),
                *keys]  # fmt: skip
    swatches = "".join(
        f'<li><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="{name}" width="10" '
        f'height="10"/></svg>{text(said)}</li>'
        for name, said in keys
    )
    return f'<ul class="legend">{swatches}</ul>'
