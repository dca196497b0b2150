"""BM25 over an FTS5 index, inside the visible files.

Every figure (how many pieces there are, how many hold a word, how long they are) is taken over the
visible files alone: what is hidden moves no score and no order. Where nothing is hidden, FTS5 ranks
by itself, which is faster.
"""

import json
import math
from collections import defaultdict
from typing import Final

from harness_core.collections.sqlite.snapshot import SqliteSnapshot, listed
from harness_core.collections.store import FileSet, Ranked, Snapshot
from harness_core.collections.words import asked
from harness_core.ranking.bm25 import K1, B

COMMON: Final = 0.2
"""A word in more than this share of the pieces is not looked for while others are."""
_MANY: Final = 1000

_WORDS = (
    "SELECT c.id, count(*) AS n FROM instance_{n} v CROSS JOIN chunk c ON c.id = v.doc "
    "WHERE v.term = ? AND c.file IN (SELECT value FROM json_each(?)) GROUP BY c.id"
)
_NATIVE = (
    "SELECT c.id, c.file, -bm25(fts_{n}) AS score "
    "FROM fts_{n} JOIN chunk c ON c.id = fts_{n}.rowid JOIN file f ON f.id = c.file WHERE fts_{n} MATCH ? "
    "ORDER BY round(score, 9) DESC, f.path, c.start, f.fid LIMIT ?"
)
_TIES = (
    "SELECT c.id, c.file FROM json_each(?) j "
    "JOIN chunk c ON c.id = j.value JOIN file f ON f.id = c.file ORDER BY f.path, c.start, f.fid"
)
_LENGTHS = "SELECT id, words FROM chunk WHERE id IN (SELECT value FROM json_each(?))"
_TOTAL = (
    "SELECT sum(pieces) AS pieces, sum(words) AS words FROM file "
    "WHERE id IN (SELECT value FROM json_each(?))"
)
_FREQUENT = "SELECT term, doc FROM row_{n} WHERE term IN (SELECT value FROM json_each(?))"


class SqliteRanker:
    """The ranker of the embedded store."""

    def rank(self, snapshot: Snapshot, files: FileSet, query: str, limit: int) -> list[Ranked]:
        """The best pieces, best first; none that shares no word with the query."""
        if not isinstance(snapshot, SqliteSnapshot):
            raise TypeError("this ranker reads snapshots of the embedded store")
        words = asked(query)
        if not words or not files.pieces:
            return []
        nothing_hidden = snapshot.counts().get("ready", 0) == len(files.ids)
        if snapshot.info.access_control == "off" and nothing_hidden:
            return _native(snapshot, files.pieces, words, limit)
        return _exact(snapshot, files, words, limit)


def _native(snapshot: SqliteSnapshot, pieces: int, words: list[str], limit: int) -> list[Ranked]:
    connection, number = snapshot.connection, snapshot.number
    rows = connection.execute(_FREQUENT.format(n=number), (json.dumps(words),))
    kept = _telling({row["term"]: row["doc"] for row in rows}, pieces)
    if not kept:
        return []
    match = " OR ".join(f'"{word}"' for word in kept)
    rows = connection.execute(_NATIVE.format(n=number), (match, limit))
    return [Ranked(row["id"], row["file"], row["score"]) for row in rows]


def _exact(snapshot: SqliteSnapshot, files: FileSet, words: list[str], limit: int) -> list[Ranked]:
    connection, inside = snapshot.connection, listed(files)
    statement = _WORDS.format(n=snapshot.number)
    found = {}
    for word in words:
        rows = connection.execute(statement, (word, inside)).fetchall()
        if rows:
            found[word] = {row["id"]: row["n"] for row in rows}
    total = connection.execute(_TOTAL, (inside,)).fetchone()
    kept = _telling({word: len(places) for word, places in found.items()}, total["pieces"])
    chunks = json.dumps(sorted({chunk for word in kept for chunk in found[word]}))
    lengths = {row["id"]: row["words"] for row in connection.execute(_LENGTHS, (chunks,))}
    scores: dict[int, float] = defaultdict(float)
    mean = total["words"] / total["pieces"]
    for word in kept:
        places = found[word]
        idf = math.log1p((total["pieces"] - len(places) + 0.5) / (len(places) + 0.5))
        for chunk, often in places.items():
            norm = K1 * (1 - B + B * lengths[chunk] / mean)
            scores[chunk] += idf * often * (K1 + 1) / (often + norm)
    ties = [(row["id"], row["file"]) for row in connection.execute(_TIES, (chunks,))]
    best = sorted(ties, key=lambda tie: -round(scores[tie[0]], 9))
    return [Ranked(chunk, file, scores[chunk]) for chunk, file in best[:limit]]


def _telling(found: dict[str, int], total: int) -> list[str]:
    """The words worth looking for: in a large set those that are everywhere only slow it down."""
    if total <= _MANY:
        return list(found)
    return [word for word, often in found.items() if often <= COMMON * total] or list(found)
