"""The same conversation has the same snapshot, whatever its ids, paths and objects."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from harness_integrations.shared.snapshots import (
    DATA_TOKENS,
    Said,
    as_json,
    plain,
    portable,
    snapshots,
    tokens_of_data,
)


def conversation(call: str, run: str, content: Any = "Sunny.") -> list[Said]:
    return [
        Said(role="user", content="Weather?", name="ann"),
        Said(
            role="assistant",
            content=[{"type": "reasoning", "id": run, "index": 3, "summary": ["hm"]}],
            tool_calls=[(call, "weather", {"place": "Rome"})],
        ),
        Said(role="tool", content=content, tool_call_id=call, name="weather"),
    ]


@given(st.text(min_size=1), st.text(min_size=1))
def test_generated_ids_do_not_count(one: str, other: str) -> None:
    assert snapshots(conversation(one, other)) == snapshots(conversation(other, one))


def test_what_was_said_does_count() -> None:
    assert snapshots(conversation("a", "b")) != snapshots(conversation("a", "b", "Rain."))
    asked, called, told = snapshots(conversation("a", "b"))
    assert asked.more == {"name": "ann"}
    assert called.more is not None
    assert called.more["tool_calls"] == [
        {"id": "call_1", "name": "weather", "args": {"place": "Rome"}}
    ]
    assert called.more["blocks"] == [{"type": "reasoning", "summary": ["hm"]}]
    assert told.more == {"name": "weather", "tool_call_id": "call_1"}


def test_blocks_of_text_are_text() -> None:
    split = Said(role="user", content=[{"type": "text", "text": "a "}, "b"])
    assert snapshots([split]) == snapshots([Said(role="user", content="a b")])


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}},
        {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"},
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="},
        },
    ],
)
def test_data_is_kept_as_its_hash(block: dict[str, Any]) -> None:
    kept = snapshots([Said(role="user", content=["see", block])])
    assert "aGVsbG8" not in json.dumps(kept[0].as_json())
    found = (kept[0].more or {})["blocks"][1]
    assert (found["media"], found["bytes"]) == ("image", 5)
    assert found["sha256"].startswith("2cf24dba")  # of the five letters
    assert tokens_of_data(kept) == DATA_TOKENS


def test_a_large_file_is_taken_for_its_size() -> None:
    sound = {"type": "audio", "data": "A" * 40_000, "mime_type": "audio/wav"}
    assert tokens_of_data(snapshots([Said(role="user", content=[sound])])) == 30_000


def test_this_machines_folders_are_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert portable(f"see {os.getcwd()}/a.txt") == "see <cwd>/a.txt"
    assert portable(f"{tempfile.gettempdir()}/pytest-of-me/pytest-12/x") == "<tmp>/x"
    assert portable(f"{Path.home()}-other/x") in (f"{Path.home()}-other/x", "<home>-other/x")
    assert portable("nothing here") == "nothing here"


class Shape(BaseModel):
    side: int


def test_objects_become_data_and_never_addresses() -> None:
    assert plain(Shape)["properties"]["side"]["type"] == "integer"
    assert plain({"a": (1, Shape(side=2)), "b": object(), "c": {"y", "x"}}) == {
        "a": [1, {"side": 2}],
        "b": "<object>",
        "c": ["x", "y"],
    }


def test_json_keeps_what_it_can_and_reads_no_text_that_is_no_unicode() -> None:
    class Odd:
        pass

    here = f"{os.getcwd()}/a.txt"
    assert as_json({1: (here, {"x": None}), "odd": Odd()}) == {
        "1": [here, {"x": None}],
        "odd": "<Odd>",
    }
    assert as_json({"a\ud800": ["b\udfff", 2**70]}) == {"a\ufffd": ["b\ufffd", 2**70]}
    assert plain({"a\ud800": "b\udfff\x00"}) == {"a\ufffd": "b\ufffd\x00"}
