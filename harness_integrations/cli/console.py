"""What the command line prints, and where: answers on stdout, everything about them on stderr."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import orjson
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from harness_core import Answer
from harness_core.answer import CONTRADICTED, cost_line
from harness_core.calls.progress import OnProgress
from harness_core.calls.progress import Progress as Landed


def _plain(stream: Any) -> bool:
    return not stream.isatty() or bool(os.environ.get("CI")) or "NO_COLOR" in os.environ


def out() -> Console:
    """Stdout; plain when piped."""
    return Console(
        file=sys.stdout, no_color=_plain(sys.stdout), highlight=False, soft_wrap=_plain(sys.stdout)
    )


def say(text: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"{text}\n")


def print_json(value: Any) -> None:
    """JSON and nothing else on stdout."""
    if isinstance(value, str):
        sys.stdout.write(f"{value}\n")
    else:
        sys.stdout.write(
            orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode() + "\n"
        )


def print_answer(answer: Answer) -> None:
    """The answer and its evidence on stdout; what it cost and why it is partial on stderr."""
    if answer.premise:
        say(CONTRADICTED)
    sys.stdout.write(f"{answer.wording()}\n")
    if answer.evidence and answer.found:
        say(f"evidence: {answer.places()}")
    say(cost_line(answer.totals()))
    if answer.partial:
        for reason in answer.reasons() or ["something degraded"]:
            say(f"partial: {reason}")


def print_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """A table on stdout."""
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    console = out()
    if _plain(sys.stdout):
        console.width = 200
    console.print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value).replace("\n", " ")


@contextmanager
def progress_bar() -> Iterator[OnProgress | None]:
    """A bar on a terminal; nothing in a pipe or in CI."""
    if _plain(sys.stderr):
        yield None
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"),
        TextColumn("{task.fields[spent]}"),
    )  # fmt: skip
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("reading", total=None, spent="")

        def heard(landed: Landed) -> None:
            bar.update(
                task, description=landed.stage, completed=landed.done, total=landed.total,
                spent="cost unknown" if landed.spent is None else f"${landed.spent:.4f} spent",
            )  # fmt: skip

        yield heard
