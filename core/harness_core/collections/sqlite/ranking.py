"""Word search inside the visible files.

Where access is enforced, every figure of BM25 (how many pieces there are, how many hold a word, how
long they are) is taken over the visible files alone, and only their postings are read: what is
hidden moves neither a score nor the time it takes. Where nothing is hidden, FTS5 ranks by itself.
"""

import json
from collections.abc import Iterable
from typing import Final

from harness_core.collections.postings import PLACE_BYTES, unpacked
from harness_core.collections.scoring import Count, best, is_common, lucene, scored, telling
from harness_core.collections.sqlite.schema import PART_BITS
from harness_core.collections.sqlite.snapshot import SqliteSnapshot, listed
from harness_core.collections.store import FileSet, Ranked, Snapshot
from harness_core.collections.words import asked

_FTS: Final = (
    "SELECT c.id, c.file, -bm25(fts_{n}) AS score "
    "FROM fts_{n} JOIN chunk c ON c.id = fts_{n}.rowid JOIN file f ON f.id = c.file "
    "WHERE fts_{n} MATCH ?1 AND (?2 IS NULL OR c.file IN (SELECT value FROM json_each(?2))) "
    "ORDER BY round(score, 9) DESC, f.path, c.start, f.fid LIMIT ?3"
)
_FREQUENT: Final = (
    "SELECT term AS word, doc AS n FROM row_{n} WHERE term IN (SELECT value FROM json_each(?))"
)
_PLACES: Final = (
    "SELECT p.places FROM json_each(?) j CROSS JOIN post_{n} p "  # noqa: S608 - numbers
    f"WHERE p.part = j.value >> {PART_BITS} AND p.word = ? AND p.file = j.value"
)
_TIES: Final = (
    "SELECT c.id, c.file FROM json_each(?) j "
    "JOIN chunk c ON c.id = j.value JOIN file f ON f.id = c.file ORDER BY f.path, c.start, f.fid"
)
_LENGTH: Final = "SELECT sum(words) FROM file WHERE id IN (SELECT value FROM json_each(?))"


class SqliteRanker:
    """The ranker of the embedded store."""

    def rank(self, snapshot: Snapshot, files: FileSet, query: str, limit: int) -> list[Ranked]:
        """The best pieces, best first; none that shares no word with the query."""
        if not isinstance(snapshot, SqliteSnapshot):
            raise TypeError("this ranker reads snapshots of the embedded store")
        words = asked(query)
        if not words or not files.pieces:
            return []
        enforced = snapshot.info.access_control == "enforced"
        return (_by_postings if enforced else _by_fts)(snapshot, files, words, limit)


def _by_fts(snapshot: SqliteSnapshot, files: FileSet, words: list[str], limit: int) -> list[Ranked]:
    connection, number = snapshot.connection, snapshot.number
    rows = connection.execute(_FREQUENT.format(n=number), (json.dumps(words),))
    kept = telling({row["word"]: row["n"] for row in rows}, files.pieces)
    if not kept:
        return []
    match = " OR ".join(f'"{word}"' for word in kept)
    every = snapshot.counts().get("ready", 0) == len(files.ids)
    inside = None if every else listed(files)
    rows = connection.execute(_FTS.format(n=number), (match, inside, limit))
    return [Ranked(row["id"], row["file"], row["score"]) for row in rows]


def _by_postings(
    snapshot: SqliteSnapshot, files: FileSet, words: list[str], limit: int
) -> list[Ranked]:
    connection, inside = snapshot.connection, listed(files)
    often: dict[str, int] = {}
    held: dict[str, bytes] = {}

    def places(word: str) -> bytes:
        rows = connection.execute(_PLACES.format(n=snapshot.number), (inside, word))
        return b"".join([row[0] for row in rows])

    def placed(chunks: list[int]) -> Iterable[tuple[int, int]]:
        return connection.execute(_TIES, (json.dumps(chunks),))

    for word in words:
        found = places(word)
        often[word] = len(found) // PLACE_BYTES
        if not is_common(often[word], files.pieces):  # the others would be large, and for nothing
            held[word] = found
    kept = telling(often, files.pieces)
    count = Count(files.pieces, connection.execute(_LENGTH, (inside,)).fetchone()[0])
    each = ((often[word], unpacked(held.get(word) or places(word))) for word in kept)
    return best(*scored(each, count, lucene), limit, placed)
