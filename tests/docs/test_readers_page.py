"""The page on readers names every reader and recipe there is, as it is today."""

import inspect
import re
from pathlib import Path

import pytest

from harness_core import list_readers, list_recipes

PAGE = (Path(__file__).parents[2] / "docs" / "readers.md").read_text()


@pytest.mark.parametrize("recipe", list_recipes(), ids=lambda row: row["name"])
def test_a_recipes_row_is_the_recipe(recipe: dict[str, object]) -> None:
    overlap = f" + {recipe['overlap_tokens']}" if recipe["overlap_tokens"] else ""
    cites = ", cites" if recipe["cite"] else ""
    row = (
        f"| `{recipe['name']}` | {recipe['segmenter']}, {recipe['max_tokens']}{overlap} "
        f"| `{recipe['reader']}`{cites} | {recipe['description']} |"
    )
    assert row in PAGE


@pytest.mark.parametrize("reader", [row["name"] for row in list_readers()])
def test_every_reader_has_its_case(reader: str) -> None:
    assert re.search(rf"^\|[^|]+\| `{reader}`", PAGE, re.MULTILINE) or f"`{reader}` if" in PAGE


def test_a_reader_of_ones_own_takes_less_than_25_lines() -> None:
    (written,) = re.findall(r"^class Opening:.*?\n\n\n", PAGE, re.DOTALL | re.MULTILINE)
    assert len(inspect.cleandoc(written).splitlines()) < 25
