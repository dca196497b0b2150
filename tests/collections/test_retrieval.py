"""What is read to find what an answer is made from."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from harness_core.collections.access import check_fence
from harness_core.collections.efforts import HIGH, MEDIUM, Plan
from harness_core.collections.retrieval import Scope, found, retrieved
from harness_core.collections.searching import Search
from harness_core.collections.sqlite.ranking import SqliteRanker
from harness_core.collections.sqlite.snapshot import SqliteSnapshot
from harness_core.collections.sqlite.store import SqliteStore
from harness_core.collections.store import CollectionInfo, FileSet, Passage, Ranked, Snapshot
from tests.collections.conformance import EVERYTHING, added, made

LINES = Search(lines=("the harbour bridge", "a bridge"))
SCOPE = Scope(node=EVERYTHING, principals=None)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "store.db")
    yield opened
    opened.close()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of how many pieces the text was read, time by time."""
    counts: list[int] = []
    whole = SqliteSnapshot.passages

    def counted(snapshot: SqliteSnapshot, chunks: Sequence[int]) -> list[Passage]:
        counts.append(len(chunks))
        return whole(snapshot, chunks)

    monkeypatch.setattr(SqliteSnapshot, "passages", counted)
    return counts


def library(store: SqliteStore, *others: str) -> CollectionInfo:
    """A book of many pieces about the bridge, and other files."""
    docs = made(store)
    pieces = [f"Of the harbour bridge, number {n}. {'More of it. ' * 9}" for n in range(600)]
    added(store, docs, "/book", "\n\n".join(pieces))
    for number, text in enumerate(others):
        added(store, docs, f"/{number}", text)
    return docs


@pytest.mark.parametrize("plan", [MEDIUM, HIGH])
@pytest.mark.parametrize("others", [(), ("Nothing.",), ("A bridge.",) * 9, ("A bridge.",) * 40])
def test_of_a_large_file_no_more_is_read_than_may_be_chosen(
    store: SqliteStore, read: list[int], plan: Plan, others: tuple[str, ...]
) -> None:
    docs = library(store, *others)
    with store.snapshot(docs.id) as snapshot:
        best = retrieved(snapshot, store.ranker, SCOPE, LINES, plan)
    assert sum(read) <= plan.candidates
    paths = [one.passage.path for one in best]
    assert 0 < paths.count("/book") <= plan.per_file
    assert len(set(paths)) == (
        1 if others in [(), ("Nothing.",)] else 1 + plan.taken - plan.per_file
    )


@pytest.mark.parametrize("plan", [MEDIUM, HIGH])
def test_a_large_file_alone_is_ranked_once(store: SqliteStore, plan: Plan) -> None:
    class Counting(SqliteRanker):
        asked: ClassVar[list[int]] = []

        def rank(self, snapshot: Snapshot, files: FileSet, query: str, limit: int) -> list[Ranked]:
            self.asked.append(limit)
            return super().rank(snapshot, files, query, limit)

    docs = library(store)
    with store.snapshot(docs.id) as snapshot:
        retrieved(snapshot, Counting(), SCOPE, LINES, plan)
    assert Counting.asked == [plan.candidates] * len(LINES.lines)


def test_a_search_reads_no_more_than_it_gives(store: SqliteStore, read: list[int]) -> None:
    docs = library(store)
    with store.snapshot(docs.id) as snapshot:
        best = found(snapshot, store.ranker, SCOPE, LINES, 7)
    assert (len(best), read) == (7, [7])


def test_the_fence_reads_the_text_of_a_file_once(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = library(store, "A bridge.", "A bridge.")
    texts: list[str] = []
    whole = SqliteSnapshot.text

    def noted(snapshot: SqliteSnapshot, file_id: str) -> str | None:
        texts.append(file_id)
        return whole(snapshot, file_id)

    monkeypatch.setattr(SqliteSnapshot, "text", noted)
    with store.snapshot(docs.id) as snapshot:
        passages = snapshot.passages(snapshot.pieces(snapshot.visible(EVERYTHING, None)))
        mixed = passages[::2] + passages[1::2]
        check_fence(snapshot, mixed, EVERYTHING, None)
    assert len(texts) == len(set(texts)) == 3
