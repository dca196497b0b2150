"""Text on its way into a page: whatever it holds, it stays text."""

import html
import re

from harness_core.calls.governor import dollars
from harness_core.messages import clean_text

# Control characters are no valid HTML, and those that turn the direction of writing can make text
# look like what it is not: each is shown as U+FFFD.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufdd0-\ufdef\ufffe\uffff]"
)


def text(value: object) -> str:
    """A value as HTML text, safe in an element and in a quoted attribute."""
    return html.escape(_INVISIBLE.sub("\ufffd", clean_text(str(value))))


def usd(amount: float | None) -> str:
    """An amount for a person; an unknown one is said, never shown as 0."""
    if amount is None:
        return "unknown"
    if amount >= 0.01:
        return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"
    return f"${dollars(amount) if amount else 0}"


def plural(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def table(caption: str, columns: list[str], rows: list[list[str]]) -> str:
    """A table of text; the first column names its row, the others are numbers."""
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in columns)
    body = "".join(
        f'<tr><th scope="row">{text(first)}</th>'
        + "".join(
            f'<td data-name="{text(name)}">{text(cell)}</td>'
            for name, cell in zip(columns[1:], rest, strict=True)
        )
        + "</tr>"
        for first, *rest in rows
    )
    return (
        f"<table><caption>{text(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )
