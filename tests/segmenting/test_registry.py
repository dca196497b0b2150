import pytest

from harness_core.errors import BadSettingError, UnknownMethodError
from harness_core.segmenting import list_segmenters, register_segmenter
from harness_core.segmenting.registry import find_segmenter


def test_the_built_in_segmenters() -> None:
    rows = {row["name"]: row for row in list_segmenters()}
    assert list(rows) == [
        "contextual",
        "fixed",
        "page",
        "paragraph",
        "proposition",
        "recursive",
        "semantic",
        "sentence",
        "structural",
    ]
    assert {name: row["cost"] for name, row in rows.items() if row["cost"] != "free"} == {
        "proposition": "llm",
        "semantic": "embedding",
    }
    assert [name for name, row in rows.items() if row["needs_client"]] == [
        "proposition",
        "semantic",
    ]
    assert {name: row["stages"] for name, row in rows.items() if row["stages"]} == {
        "contextual": ["segment.context"],
        "proposition": ["segment.proposition"],
    }
    assert rows["page"]["description"] == "One chunk per page."
    assert all(row["description"].endswith(".") for row in rows.values())


def test_a_registered_segmenter_is_listed_and_may_take_over_a_name() -> None:
    register_segmenter(
        "lines",
        lambda document, _spec: document.text.splitlines(),
        cost="llm",
        needs_client=True,
        stages=["lines.ask"],
        description="Line by line.",
    )
    register_segmenter("page", lambda document, _spec: [document.text], description="Mine.")
    rows = {row["name"]: row for row in list_segmenters()}
    assert rows["lines"] == {
        "name": "lines",
        "cost": "llm",
        "needs_client": True,
        "stages": ["lines.ask"],
        "description": "Line by line.",
    }
    assert rows["page"]["description"] == "Mine."


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownMethodError, match="contextual, fixed, page"):
        find_segmenter("zzz")


def test_what_cannot_be_registered() -> None:
    with pytest.raises(BadSettingError, match="non-blank"):
        register_segmenter(" ", lambda _document, _spec: [])
    with pytest.raises(BadSettingError, match="function"):
        register_segmenter("x", "text")  # type: ignore[arg-type]  # what a caller may get wrong
    with pytest.raises(BadSettingError, match="cost"):
        register_segmenter("x", lambda _document, _spec: [], cost="cheap")
