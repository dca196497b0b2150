"""One trace as one HTML page: self-contained, without a script, fit for paper and for a phone.

A policy in the page lets nothing run and nothing load, whatever the prompts and replies hold.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import orjson

from harness_core.answer import reasons
from harness_core.calls.accounts import usd_pico
from harness_core.calls.governor import Refusal
from harness_core.calls.steps import PICO, Step
from harness_core.calls.trace import Trace
from harness_core.report.excerpts import evidence_html
from harness_core.report.markup import plural, table, text, usd
from harness_core.report.waterfall import waterfall_html
from harness_core.report.wording import clipped

_MOST_TOLD = 8
_LONGEST_TOLD = 400


def trace_page(trace: Trace, *, answer: Mapping[str, Any] | None = None) -> str:
    """The page of a trace; with ``answer`` (``Answer.to_dict()``) its text and evidence as well.

    On top stands what was refused, failed or degraded; below it totals, requests by stage over
    time, the bill, and every step with its prompt and reply to unfold.
    """
    style = files("harness_core.report").joinpath("page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    title = text(f"Trace {trace.run_id}")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{title}</title><style>{style}</style></head><body>"
        f"<header><h1>{title}</h1><p>{text(_when(trace))}</p></header><main>"
        f"{''.join(_sections(trace, answer))}</main></body></html>\n"
    )


def _sections(trace: Trace, answer: Mapping[str, Any] | None) -> Iterator[str]:
    yield _alerts(list(_troubles(trace, answer)))
    yield f'<section aria-label="Totals"><dl class="tiles">{"".join(_tiles(trace))}</dl></section>'
    if answer is not None:
        yield _answer(answer, trace)
    yield f"<section><h2>Requests by stage</h2>{waterfall_html(trace.requests)}</section>"
    yield f"<section><h2>Bill</h2>{_bill(trace)}</section>"
    yield f"<section><h2>Steps</h2>{''.join(map(_step, trace.steps))}</section>"


def _when(trace: Trace) -> str:
    actor = [f"{name.replace('_', ' ')} {value}" for name, value in trace.actor.items() if value]
    return " · ".join([f"started {trace.started}", *actor])


# --- what went wrong ------------------------------------------------------------------------------


def _troubles(trace: Trace, answer: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """A word and a sentence for each refusal, failure and degradation."""
    if trace.budget_stop:
        yield "Stopped", f"by the limit: {trace.stop_reason}"
    if trace.incomplete:
        count = plural(trace.lost_holds, "request")
        yield "Incomplete", f"{count} sent without a recorded reply; charged at the bound"
    if answer is not None:
        yield from _degraded(answer)
    for step in trace.steps:
        yield from _trouble(step)
    yield from _refused(trace.refusals)


def _refused(refusals: Sequence[Refusal]) -> Iterator[tuple[str, str]]:
    """One line for the refusals of a stage that have one reason."""
    alike: dict[tuple[str, str, str], list[Refusal]] = {}
    for one in refusals:
        alike.setdefault((one.label, one.model, one.reason), []).append(one)
    for (label, model, _), those in alike.items():
        times = f", {len(those)} of them; the first" if len(those) > 1 else ""
        yield "Refused", f"{label} ({model}){times}: {those[0].message}"


def _trouble(step: Step) -> Iterator[tuple[str, str]]:
    where = f"{step.step} {step.label}"
    if not step.ok:
        ending = " (recovered by a fallback)" if step.recovered else ""
        yield "Failed", f"{where}: {step.error or 'no reason given'}{ending}"
    elif step.finish_reason == "length":
        yield "Cut off", f"{where}: the reply stopped at its output cap"
    elif step.local and (step.detail or {}).get("fallback"):
        instead = (step.detail or {}).get("source", "a simpler method")
        yield "Degraded", f"{where}: fell back to {instead}"


def _degraded(answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if answer.get("partial"):
        known = reasons(answer.get("notes") or {}) or ["something degraded on the way to it"]
        yield from (("Partial", f"the answer: {reason}") for reason in known)
    for warning in answer.get("warnings") or ():
        said = warning.get("message") if isinstance(warning, Mapping) else warning
        yield "Warning", str(said)


def _alerts(troubles: list[tuple[str, str]]) -> str:
    if not troubles:
        return '<p class="fine">Nothing was refused, failed or cut off.</p>'
    items = [
        f"<li><strong>{text(word)}</strong> {text(clipped(said, _LONGEST_TOLD))}</li>"
        for word, said in troubles
    ]
    rest = items[_MOST_TOLD:]
    more = f"<details><summary>{len(rest)} more</summary><ul>{''.join(rest)}</ul></details>"
    return (
        f'<section class="alerts" aria-label="What went wrong"><ul>{"".join(items[:_MOST_TOLD])}'
        f"</ul>{more if rest else ''}</section>"
    )


# --- totals ---------------------------------------------------------------------------------------


def _tiles(trace: Trace) -> Iterator[str]:
    known = trace.summary()
    requests = trace.requests
    tiles = (
        ("Cost", usd(known["usd"])),
        ("Requests", f"{len(requests):,}"),
        ("Cached", f"{known['cached']:,}"),
        ("Tokens in", f"{known['tokens_in'] + known['embed_tokens']:,}"),
        ("Tokens out", f"{known['tokens_out']:,}"),
        ("Elapsed", f"{known['elapsed_s']:,.2f} s"),
        ("Failed", f"{known['errors']:,}"),
        ("Refused", f"{known['refusals']:,}"),
    )
    for name, value in tiles:
        yield f"<div><dt>{name}</dt><dd>{text(value)}</dd></div>"


def _bill(trace: Trace) -> str:
    rows = [
        [
            row["model"] or "no model", f"{row['calls']:,}", f"{row['paid_calls']:,}",
            f"{row['paid_in']:,}", f"{row['paid_out']:,}", usd(row["usd"]),
        ]
        for row in trace.cost()
    ]  # fmt: skip
    columns = ["Model", "Requests", "Paid", "Tokens in", "Tokens out", "Cost"]
    return table("By model; requests answered from a store are not paid", columns, rows)


def _answer(answer: Mapping[str, Any], trace: Trace) -> str:
    prompts = [message.content for step in trace.requests for message in step.prompt]
    badge = ' <span class="badge bad">partial</span>' if answer.get("partial") else ""
    return (
        f"<section><h2>Answer{badge}</h2>"
        f'<p class="question" dir="auto">{text(answer.get("question", ""))}</p>'
        f'<p class="answer" dir="auto">{text(answer.get("answer", ""))}</p>'
        f"<h3>Evidence</h3>{evidence_html(answer, prompts)}</section>"
    )


# --- steps ----------------------------------------------------------------------------------------


def _step(step: Step) -> str:
    number, label = text(step.step), text(step.label)
    name = f'<span class="number">{number}</span> <b>{label}</b>'
    if step.local:
        detail = text(_json(step.detail or {}))
        return (
            f'<details class="step local" id="step-{number}"><summary>{name} <small>no request'
            f"</small></summary><pre>{detail}</pre></details>"
        )
    return (
        f'<details class="step" id="step-{number}"><summary>{name} <small>{text(_facts(step))}'
        f"</small>{_badges(step)}</summary>{''.join(_said(step))}</details>"
    )


def _facts(step: Step) -> str:
    pico = usd_pico(step)
    tokens = (step.tokens.input, step.tokens.output)
    return " · ".join([
        step.model or "no model",
        " in / ".join("?" if count is None else f"{count:,}" for count in tokens) + " out",
        usd(None if pico is None else pico / PICO),
        f"{step.seconds:.2f} s",
    ])  # fmt: skip


def _badges(step: Step) -> str:
    told = (
        (step.cached, "", "cached"),
        (not step.ok, "bad", "failed"),
        (step.recovered, "", "recovered"),
        (step.finish_reason == "length", "bad", "cut off"),
        (step.attempts > 1, "", plural(step.attempts, "attempt")),
    )
    return "".join(f' <span class="badge {kind}">{said}</span>' for on, kind, said in told if on)


def _said(step: Step) -> Iterator[str]:
    for message in step.prompt:
        more = f"\n\n{_json(message.more)}" if message.more else ""
        yield _fold(f"prompt: {message.role}", message.content + more)
    if step.error:
        yield _fold("error", step.error, shown=True)
    if step.kind == "chat":
        yield _fold("reply", step.response or "(empty)", shown=True)
    yield _fold("settings", _json({"asked": step.params, "sent": step.params_sent}))


def _fold(name: str, said: str, *, shown: bool = False) -> str:
    size = f" <small>{plural(len(said), 'character')}</small>"
    return (
        f"<details{' open' if shown else ''}><summary>{text(name)}{size}</summary>"
        f'<pre dir="auto">{text(said)}</pre></details>'
    )


def _json(value: Any) -> str:
    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
    return orjson.dumps(value, default=str, option=options).decode()
