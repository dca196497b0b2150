"""``python -m bench``: every table in one run, as ratios; non-zero when a target is missed."""

import argparse
import platform
import sys
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOMS = (
    "counting",
    "segmenting",
    "overhead",
    "replaying",
    "recordings",
    "quotations",
    "langchain",
    "llama_index",
    "engine",
    "retrieval",
)
SHOWN = ("harness-integrations", "langchain-core", "langchain-classic", "llama-index-core", "vcrpy",
         "tiktoken", "rank-bm25", "rapidfuzz")  # fmt: skip


def main() -> int:
    """Measure, print, write the table; 1 when a row misses its target."""
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("rooms", nargs="*", help="which tables (all by default)")
    parser.add_argument("--write", action="store_true", help="write bench/results.md")
    options = parser.parse_args()
    chosen = options.rooms or [room for room in ROOMS if (HERE / f"{room}.py").is_file()]
    parts = [_head()]
    missed: list[str] = []
    for room in chosen:
        rows: list[dict[str, Any]] = import_module(f"bench.{room}").rows()
        missed += [f"{room}: {row['what']}" for row in rows if row.get("met") is False]
        parts.append(f"## {room}\n\n{_table(rows)}\n")
        print(parts[-1], flush=True)
    if options.write:
        (HERE / "results.md").write_text("\n".join(parts))
    for what in missed:
        print(f"MISSED  {what}", file=sys.stderr)
    return 1 if missed else 0


def _head() -> str:
    versions = ", ".join(f"{name} {_version(name)}" for name in SHOWN)
    return (
        f"# Measured\n\n{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}; {versions}.\n\nRatios hold within one run; "
        "absolute times depend on the machine. CPU time unless a row says wall.\n"
    )


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _table(rows: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(_cell(row.get(name)) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)


if __name__ == "__main__":
    sys.exit(main())
