"""The commands. Each reads its options, calls one function of the core, and prints."""

import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from harness_core import (
    Answer,
    Governor,
    HarnessWarning,
    ReplayClient,
    ResponseCache,
    Trace,
    answer_document,
    current_settings,
    list_models,
    list_readers,
    list_recipes,
    override,
)
from harness_core import compare as compare_recipes
from harness_core import estimate as estimate_answer
from harness_core.answer import cost_line
from harness_core.client import Client
from harness_core.recipes import recorded_recipe
from harness_integrations.cli.clients import client_for
from harness_integrations.cli.collections import collections
from harness_integrations.cli.console import (
    out,
    print_answer,
    print_json,
    print_rows,
    progress_bar,
    say,
)
from harness_integrations.cli.exits import OTHER, REFUSED, clear_errors
from harness_integrations.cli.serving import serve
from harness_integrations.cli.traces import traces

app = typer.Typer(
    help="Governed reading of documents by language models.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(traces, name="trace")
app.add_typer(collections, name="collection")
app.command()(serve)

FileArgument = Annotated[str, typer.Argument(help="The document: PDF, DOCX, Markdown, HTML, text.")]
QuestionArgument = Annotated[str, typer.Argument(help="What to ask it.")]
RecipeOption = Annotated[str, typer.Option(help="A recipe (see `harness recipes`), or auto.")]
ReaderOption = Annotated[str | None, typer.Option(help="A reader, instead of the recipe's.")]
ModelOption = Annotated[
    str | None, typer.Option(help="An OpenAI model id, or langchain:provider:model.")
]
CostOption = Annotated[float | None, typer.Option(help="USD the run may spend.")]
CallsOption = Annotated[int | None, typer.Option(help="Requests the run may make.")]
TokensOption = Annotated[
    int | None, typer.Option("--chunk-tokens", help="Tokens of one chunk, at the most.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


@app.callback()
def _root() -> None:
    """Governed reading of documents by language models."""
    warnings.simplefilter("ignore", HarnessWarning)  # the answer says them; see print_answer


@app.command()
def ask(
    file: FileArgument,
    question: QuestionArgument,
    recipe: RecipeOption = "auto",
    reader: ReaderOption = None,
    model: ModelOption = None,
    max_cost: CostOption = None,
    max_calls: CallsOption = None,
    max_tokens: TokensOption = None,
    cache: Annotated[Path | None, typer.Option(help="A file that keeps replies.")] = None,
    trace: Annotated[Path | None, typer.Option(help="A file that records the run.")] = None,
    resume: Annotated[bool, typer.Option(help="Go on with the run in --trace.")] = False,
    cite: Annotated[bool, typer.Option(help="Ask for [chunk N] citations.")] = False,
    premise: Annotated[
        bool, typer.Option(help="Check what the question takes for granted.")
    ] = False,
    verify: Annotated[bool, typer.Option(help="Check every quotation.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from a document, and say what it rests on and what it cost."""
    with clear_errors(trace), ExitStack() as stack:
        client, note = client_for(model)
        governor = _governor(max_cost, max_calls)
        if note and not as_json:
            say(_before(note, client, governor))
        if cache is not None:
            client = client.with_cache(ResponseCache(cache))  # type: ignore[attr-defined]  # ours all have it
        run = Trace(governor, path=trace, resume=resume)
        stack.callback(run.close)
        bar = stack.enter_context(progress_bar())
        overrides = _overrides(reader=reader, max_tokens=max_tokens, cite=cite, premise=premise,
                               verify=verify)  # fmt: skip
        answer = answer_document(
            file, question, recipe, client=client, trace=run, on_progress=bar, **overrides
        )
    _finish(answer, as_json=as_json)


@app.command()
def estimate(
    file: FileArgument,
    question: QuestionArgument,
    recipe: RecipeOption = "auto",
    reader: ReaderOption = None,
    model: ModelOption = None,
    max_tokens: TokensOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what an answer would need: requests, tokens and USD. Sends nothing."""
    with clear_errors():
        client, note = client_for(model, sends=False)
        overrides = _overrides(reader=reader, max_tokens=max_tokens)
        found = estimate_answer(file, question, recipe, client=client, **overrides).to_dict()
    if as_json:
        print_json(found)
        return
    if note:
        say(note)
    rows = [
        {"": "requests", "expected": found["calls"], "at most": found["worst_calls"]},
        {"": "prompt tokens", "expected": found["tokens_in"], "at most": found["worst_tokens_in"]},
        {"": "reply tokens", "expected": found["tokens_out"], "at most": found["worst_tokens_out"]},
        {"": "USD", "expected": found["usd"], "at most": found["worst_usd"]},
    ]
    say(f"{found['reader']} over {found['chunks']} chunks with {found['model']}")
    print_rows(rows, ["", "expected", "at most"])


@app.command()
def compare(
    file: FileArgument,
    question: QuestionArgument,
    recipes: Annotated[str, typer.Option(help="Recipes or readers.")] = "fast,needle,thorough",
    model: ModelOption = None,
    max_cost: CostOption = None,
    max_calls: CallsOption = None,
    max_tokens: TokensOption = None,
    correct: Annotated[
        list[str] | None, typer.Option(help="What a right answer holds; all of them, if several.")
    ] = None,
    trace: Annotated[Path | None, typer.Option(help="A file that records the run.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask several recipes the same question, and say what each answers and costs.

    The cost limit is for all of them together, the request limit for each.
    """
    with clear_errors(), ExitStack() as stack:
        client, note = client_for(model)
        governor = _governor(max_cost, max_calls)
        if note and not as_json:
            say(_before(note, client, governor))
        run = Trace(governor, path=trace)
        stack.callback(run.close)
        bar = stack.enter_context(progress_bar())
        found = compare_recipes(
            file, question, [name.strip() for name in recipes.split(",") if name.strip()],
            client=client, trace=run, correct=correct or None, on_progress=bar,
            **_overrides(max_tokens=max_tokens),
        )  # fmt: skip
    answers = found.answers
    if as_json:
        told = {name: answer.to_dict(trace=False) for name, answer in answers.items()}
        print_json({"question": found.question, "rows": found.rows(), "answers": told})
    else:
        out().print(str(found), markup=False)
        say(cost_line(run.totals()))
    if not any(one.found for one in answers.values()) and any(map(_stopped, answers.values())):
        raise typer.Exit(REFUSED)


@app.command()
def replay(
    trace: Annotated[Path, typer.Argument(help="The recording.")],
    file: FileArgument,
    question: QuestionArgument,
    as_json: JsonOption = False,
) -> None:
    """Run a recording again, with its recipe, model, settings and limits. Sends nothing."""
    with clear_errors():
        client = ReplayClient(trace)
        recorded = client.recording.trace
        recipe = recorded_recipe(recorded.steps)
        with override(**_recorded_settings(recorded)):
            run = Trace(_recorded_governor(recorded))
            answer = answer_document(file, question, recipe, client=client, trace=run)
    _finish(answer, as_json=as_json)


@app.command()
def models(as_json: JsonOption = False) -> None:
    """The models with known limits and prices (USD per million tokens)."""
    _table(list_models(), ["id", "kind", "context_window", "max_output", "input_usd_per_1m",
                           "output_usd_per_1m", "reasoning"], as_json=as_json)  # fmt: skip


@app.command()
def recipes(as_json: JsonOption = False) -> None:
    """The recipes: how a document is cut and read."""
    _table(list_recipes(), ["name", "segmenter", "max_tokens", "reader", "cite", "description"],
           as_json=as_json)  # fmt: skip


@app.command()
def readers(as_json: JsonOption = False) -> None:
    """The readers: what each does and how many requests it makes."""
    _table(list_readers(), ["name", "signature", "cost_calls", "description"], as_json=as_json)


def _table(rows: list[dict[str, Any]], columns: list[str], *, as_json: bool) -> None:
    if as_json:
        print_json(rows)
    else:
        print_rows(rows, columns)


def _finish(answer: Answer, *, as_json: bool) -> None:
    if as_json:
        print_json(answer.to_json())
    else:
        print_answer(answer)
    if not answer.found and _stopped(answer):
        raise typer.Exit(REFUSED)
    if not answer.found and answer.totals().errors:
        raise typer.Exit(OTHER)


def _stopped(answer: Answer) -> bool:
    return "stop_reason" in answer.notes


def _governor(max_cost: float | None, max_calls: int | None) -> Governor:
    limits: dict[str, Any] = {}
    if max_cost is not None:
        limits["max_cost_usd"] = max_cost
    if max_calls is not None:
        limits["max_calls"] = max_calls
    return Governor(**limits)


def _before(note: str, client: Client, governor: Governor) -> str:
    if client.unpriced_ok:
        return note
    most = governor.limits().max_cost_usd
    return f"{note}; {'no spending limit' if most is None else f'spends at most ${most:g}'}"


def _overrides(**options: Any) -> dict[str, Any]:
    """The options that were given: a flag that is off and a value left out say nothing."""
    return {name: value for name, value in options.items() if value not in (None, False)}


_REPLAYED = ("temperature", "embedder", "tokenizer", "safety_margin", "min_output_tokens")


def _recorded_settings(recorded: Trace) -> dict[str, Any]:
    known = current_settings()
    saved = recorded.config.get("settings", {})
    return {name: saved[name] for name in _REPLAYED if name in saved and name in known}


def _recorded_governor(recorded: Trace) -> Governor:
    return Governor(**(recorded.recorded_limits or {}))
