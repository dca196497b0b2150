"""Where words are, as it is kept: what goes in comes out, and what is deleted leaves nothing."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness_core.collections import Collections, in_this_process
from harness_core.collections.postings import PLACE_BYTES, packed, unpacked
from harness_core.collections.sqlite.schema import PART_BITS
from harness_core.collections.sqlite.store import SqliteStore

WORDS = st.lists(st.lists(st.sampled_from("abcdé"), max_size=9), max_size=6)


@given(WORDS, st.integers(0, 2**62))
def test_places_come_out_as_they_went_in(words: list[list[str]], first: int) -> None:
    chunks = list(range(first, first + len(words)))
    kept = packed(chunks, words)
    assert set(kept) == {word for tokens in words for word in tokens}
    for word, places in kept.items():
        found = unpacked(places + places)  # joined, as those of several files are
        holding = [n for n, tokens in enumerate(words) if word in tokens]
        assert len(places) == PLACE_BYTES * len(holding)
        assert found.chunks.tolist() == 2 * [chunks[n] for n in holding]
        assert found.times.tolist() == 2 * [words[n].count(word) for n in holding]
        assert found.lengths.tolist() == 2 * [len(words[n]) for n in holding]


def test_files_of_several_parts_are_found_until_they_are_deleted(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    engine = Collections(store, ingestion=in_this_process, pepper=b"p" * 32)
    engine.create_namespace("acme")
    secure = engine.namespace("acme").create_collection("secure", access_control="enforced")
    count = 2 * (1 << PART_BITS) + 3
    added = [
        secure.add(f"/{n:03}.txt", f"tide {'tide ' * n} harbour", principals=["user:ann"])
        for n in range(count)
    ]
    asked = {"query": "tide", "principals": ["user:ann"], "limit": 50}
    found = [one.path for one in secure.search(asked).results]
    assert sorted(found) == [one.path for one in added]
    for one in added[::2]:
        secure.delete(one.id)
    left = [one.path for one in secure.search(asked).results]
    assert sorted(left) == [one.path for one in added[1::2]]
    for one in added[1::2]:
        secure.delete(one.id)
    with store.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM post_1").fetchone()[0] == 0
    engine.close()
