"""Writes docs/settings.md from the settings table, and the readers' table into the README."""

import sys
from pathlib import Path

from harness_core.config import SETTINGS, Setting
from harness_core.reading.registry import list_readers

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
OPEN, CLOSE = "<!-- readers -->", "<!-- /readers -->"


def settings_page() -> str:
    """The settings page."""
    rows = "\n".join(_row(row) for row in SETTINGS)
    return f"""# Settings

Process defaults. `configure(name=value)` sets one and returns the former values,
`override(name=value)` sets it for a `with` block (safe in threads and tasks), and `HARNESS_NAME`
in the environment sets it when it is first read.

| setting | default | values | what it does |
|---|---|---|---|
{rows}
"""


def _row(row: Setting) -> str:
    default = "none" if row.default is None else dict(row.default) if row.kind == "mapping" else (
        row.default
    )  # fmt: skip
    values = {
        "number": f"{row.low:g} to {row.high:g}",
        "limit": "0 or more, or none",
        "choice": " or ".join(row.choices),
        "flag": "yes or no",
        "names": "names, or none",
        "mapping": "a mapping",
        "text": "text",
    }[row.kind]
    return f"| `{row.name}` | `{default}` | {values} | {row.about} |"


def readers_table() -> str:
    """The table of readers, as the README has it."""
    rows = "\n".join(
        f"| `{row['name']}` | {row['description']} | {row['cost_calls']} | {row['use']} |"
        for row in list_readers()
    )
    return f"| reader | what it does | requests | when to use it |\n|---|---|---|---|\n{rows}"


def with_readers(readme: str) -> str:
    """The README with the table of today."""
    head, _, rest = readme.partition(OPEN)
    _, _, tail = rest.partition(CLOSE)
    return f"{head}{OPEN}\n{readers_table()}\n{CLOSE}{tail}"


if __name__ == "__main__":
    (HERE / "settings.md").write_text(settings_page())
    README.write_text(with_readers(README.read_text()))
    sys.exit(0)
