"""What a service may be told to do beyond the contract: matches, cached answers, vectors."""

from pathlib import Path

import pytest

from harness_core import EmbedFallbackWarning
from harness_core.collections import AnswerCache
from harness_integrations.engine.service.settings import ServiceSettings
from tests.collections.meanings import embedder
from tests.support.engine import cite_first, path_of, world


def test_matches_are_on_the_wire_only_where_the_service_is_told(tmp_path: Path) -> None:
    for told in (False, True):
        folder = tmp_path / str(told)
        folder.mkdir()
        with world(folder, settings=ServiceSettings(matches=told), names=("docs",)) as w:
            w.model.write = lambda request: cite_first(request).replace("Fact", "database timeout")
            sources = w.ask("docs", query="database timeout").json()["sources"]
        assert all(("matches" in source) is (told and source["cited"]) for source in sources)
        assert any(source["cited"] for source in sources)


def test_cached_answers_are_kept_apart_by_key(tmp_path: Path) -> None:  # SEC63
    with world(tmp_path, names=("docs",), answer_cache=AnswerCache()) as w:
        told = [w.ask("docs", key=key).json()["usage"] for key in ("K", "Q", "K", "Q")]
    assert [usage["credits"] for usage in told] == [1, 1, 0, 0]


def test_a_fallen_embedder_is_told_in_the_header(tmp_path: Path) -> None:
    def down(texts: list[str]) -> list[list[float]]:
        if len(texts) == 1 and "found" in texts[0]:
            raise OSError("words of the provider")
        return [[1.0]] * len(texts)

    with world(tmp_path, names=("docs",), embedder=embedder(down)) as w:
        fine = w.ask("docs", query="the harbour")
        with pytest.warns(EmbedFallbackWarning):
            told = w.ask("docs", query="the harbour, found")
        path, asked = path_of("docs", ":search"), {"query": "found harbour"}
        with pytest.warns(EmbedFallbackWarning):
            search = w.request("POST", path, json=asked)
    assert "x-answer-partial" not in fine.headers
    assert (told.status_code, told.headers["x-answer-partial"]) == (200, "embedder")
    assert (search.status_code, search.headers["x-answer-partial"]) == (200, "embedder")
    assert search.json()["results"]
    assert "provider" not in told.text + search.text
