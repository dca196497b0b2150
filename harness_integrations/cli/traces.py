"""The commands on recorded runs: ``harness trace show run.jsonl``."""

import os
import re
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from harness_core import BadSettingError, Trace, TraceError
from harness_core.calls.steps import Step
from harness_core.report import (
    check_trace,
    diff_traces,
    otlp_json,
    redact_trace,
    requests_csv,
    trace_page,
)
from harness_core.report.wording import clipped
from harness_integrations.cli.console import out, print_json, print_rows, say
from harness_integrations.cli.exits import OTHER, clear_errors

traces = typer.Typer(help="Look at recorded runs.", no_args_is_help=True)

TraceArgument = Annotated[Path, typer.Argument(help="A recorded run, or an answer with its run.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
ContentOption = Annotated[
    bool, typer.Option("--content", help="With prompts, replies and names of documents (OTLP).")
]
OutOption = Annotated[
    Path | None, typer.Option("--out", "-o", help="The file to write; stdout without.")
]


class Format(StrEnum):
    """What a trace is exported to."""

    OTLP_JSON = "otlp-json"
    CSV = "csv"
    HTML = "html"


@traces.command()
def show(trace: TraceArgument, as_json: JsonOption = False) -> None:
    """What a run did: its totals, its requests, and what stopped it."""
    with clear_errors():
        loaded = Trace.load(trace)
    if as_json:
        print_json(loaded.export())
        return
    out().print(str(loaded), markup=False)
    print_rows(loaded.rows(), ["step", "stage", "model", "tokens_in", "tokens_out", "usd", "error"])
    for refusal in loaded.refusals:
        say(f"refused ({refusal.reason}): {refusal.message}")


@traces.command()
def cost(trace: TraceArgument, as_json: JsonOption = False) -> None:
    """The bill of a run, by model; an unknown price is said, never shown as 0."""
    with clear_errors():
        loaded = Trace.load(trace)
    if as_json:
        print_json(loaded.cost())
    else:
        print_rows(loaded.cost(), ["model", "calls", "paid_calls", "paid_in", "paid_out", "usd"])


@traces.command()
def steps(trace: TraceArgument, as_json: JsonOption = False) -> None:
    """Every step in order, those that asked no model as well."""
    with clear_errors():
        loaded = Trace.load(trace)
    rows = [
        {
            "step": step.step, "label": step.label, "kind": step.kind, "model": step.model,
            "ok": step.ok, "cached": step.cached, "seconds": step.seconds,
            "said": clipped(_said(step), 80),
        }
        for step in loaded.steps
    ]  # fmt: skip
    if as_json:
        print_json(rows)
    else:
        print_rows(rows, ["step", "label", "kind", "model", "ok", "cached", "seconds", "said"])


@traces.command()
def diff(
    before: Annotated[Path, typer.Argument(help="A recorded run.")],
    after: Annotated[Path, typer.Argument(help="Another one.")],
    as_json: JsonOption = False,
) -> None:
    """What changed between two runs; prints nothing and exits 0 when nothing did, 1 otherwise."""
    with clear_errors():
        found = diff_traces(Trace.load(before), Trace.load(after))
    if as_json:
        print_json(found.as_json())
    elif found:
        sys.stdout.write(f"{found}\n")
    if found:
        raise typer.Exit(OTHER)


@traces.command()
def grep(
    pattern: Annotated[str, typer.Argument(help="A regular expression; case is ignored.")],
    trace: TraceArgument,
    as_json: JsonOption = False,
) -> None:
    """The requests whose prompt, reply or error holds a text; exits 1 when none does."""
    with clear_errors():
        found = list(_holding(_compiled(pattern), Trace.load(trace).requests))
    if as_json:
        print_json(found)
    else:
        for row in found:
            sys.stdout.write(f"{row['step']} {row['label']} {row['where']}: {row['text']}\n")
    if not found:
        raise typer.Exit(OTHER)


@traces.command()
def check(trace: TraceArgument, as_json: JsonOption = False) -> None:
    """Whether a file is whole and adds up; exits 1 when it is not."""
    with clear_errors():
        problems = check_trace(trace)
    if as_json:
        print_json({"problems": problems})
    else:
        for problem in problems:
            sys.stdout.write(f"{problem}\n")
    if problems:
        raise typer.Exit(OTHER)


@traces.command()
def export(
    trace: TraceArgument,
    to: Annotated[Format, typer.Option(help="otlp-json, csv or html.")],
    file: OutOption = None,
    content: ContentOption = False,
    as_json: JsonOption = False,
) -> None:
    """A run in another form: OTLP JSON for a collector, CSV for a spreadsheet, a page to read."""
    with clear_errors():
        written = _exported(trace, to, content=content)
        _deliver(written, file, as_json=as_json)


@traces.command()
def redact(
    trace: TraceArgument,
    file: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")],
    keep_replies: Annotated[
        bool, typer.Option(help="Leave what came back, so that the copy replays to it.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """A copy of a run without what was said: each text becomes its length and a hash."""
    with clear_errors():
        if file.exists():
            raise TraceError(f"{file} exists already; name another path")
        redact_trace(Trace.load(trace), replies=not keep_replies).save(file)
        if as_json:
            print_json({"file": os.fspath(file)})


def _exported(path: Path, to: Format, *, content: bool) -> str:
    trace = Trace.load(path)
    match to:
        case Format.OTLP_JSON:
            return orjson.dumps(otlp_json(trace, content=content)).decode() + "\n"
        case Format.CSV:
            return requests_csv(trace)
    return trace_page(trace, answer=_answer_in(path))


def _answer_in(path: Path) -> dict[str, Any] | None:
    """The answer, when the file is one that carries its trace."""
    try:
        found = orjson.loads(path.read_bytes())
    except ValueError:
        return None  # JSON Lines
    return found if "answer" in found and "trace" in found else None


def _deliver(written: str, file: Path | None, *, as_json: bool) -> None:
    if file is None and as_json:
        print_json({"text": written})
    elif file is None:
        sys.stdout.write(written)
    else:
        try:
            file.write_text(written, encoding="utf-8", newline="")
        except OSError as error:
            raise TraceError(f"{file} cannot be written: {error.strerror}") from error
        if as_json:
            print_json({"file": os.fspath(file)})


def _said(step: Step) -> str:
    if step.local:
        return ", ".join(f"{name}={value}" for name, value in (step.detail or {}).items())
    return step.error or step.response


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise BadSettingError(f"{pattern!r} is no regular expression: {error}") from error


_AROUND = 50


def _holding(pattern: re.Pattern[str], requests: list[Step]) -> Iterator[dict[str, str]]:
    """One row per place: step, label, where, and the line around the first match."""
    for step in requests:
        for where, text in _texts(step):
            if match := pattern.search(text):
                start, stop = max(0, match.start() - _AROUND), match.end() + _AROUND
                near = clipped(text[start:stop], 2 * _AROUND + 100)
                yield {"step": step.step, "label": step.label, "where": where, "text": near}


def _texts(step: Step) -> Iterator[tuple[str, str]]:
    for number, message in enumerate(step.prompt, start=1):
        yield f"message {number} ({message.role})", message.content
    yield "reply", step.response
    yield "error", step.error or ""
