"""Word search inside the visible files.

Where access is enforced, every figure of BM25 (how many pieces there are, how many hold a word, how
long they are) is taken over the visible files alone, and only their postings are read: what is
hidden moves neither a score nor the time it takes. Where nothing is hidden, FTS5 ranks by itself.
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
"""A word in more than this share of many pieces is not looked for while others are."""
MANY: Final = 1000

_FTS: Final = (
    "SELECT c.id, c.file, -bm25(fts_{n}) AS score "
    "FROM fts_{n} JOIN chunk c ON c.id = fts_{n}.rowid JOIN file f ON f.id = c.file "
    "WHERE fts_{n} MATCH ?1 AND (?2 IS NULL OR c.file IN (SELECT value FROM json_each(?2))) "
    "ORDER BY round(score, 9) DESC, f.path, c.start, f.fid LIMIT ?3"
)
_FREQUENT: Final = (
    "SELECT term AS word, doc AS n FROM row_{n} WHERE term IN (SELECT value FROM json_each(?))"
)
_INSIDE: Final = "FROM post_{n} WHERE word = ? AND file IN (SELECT value FROM json_each(?))"
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
    kept = _telling({row["word"]: row["n"] for row in rows}, files.pieces)
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
    where = _INSIDE.format(n=snapshot.number)
    often = {
        word: connection.execute(f"SELECT count(*) {where}", (word, inside)).fetchone()[0]
        for word in words
    }
    mean = connection.execute(_LENGTH, (inside,)).fetchone()[0] / files.pieces
    scores: dict[int, float] = defaultdict(float)
    for word in _telling(often, files.pieces):
        idf = math.log1p((files.pieces - often[word] + 0.5) / (often[word] + 0.5)) * (K1 + 1)
        for chunk, n, length in connection.execute(
            f"SELECT chunk, n, length {where}", (word, inside)
        ):
            scores[chunk] += idf * n / (n + K1 * (1 - B + B * length / mean))
    least = sorted(scores.values(), reverse=True)[: limit + 1][-1:]
    near = [chunk for chunk, score in scores.items() if score >= least[0] - 1e-6]
    ties = connection.execute(_TIES, (json.dumps(near),)).fetchall()
    best = sorted(ties, key=lambda tie: -round(scores[tie["id"]], 9))
    return [Ranked(tie["id"], tie["file"], scores[tie["id"]]) for tie in best[:limit]]


def _telling(found: dict[str, int], pieces: int) -> list[str]:
    """The words worth looking for: in a large set those that are everywhere only slow it down."""
    known = [word for word, often in found.items() if often]
    if pieces <= MANY:
        return known
    return [word for word in known if found[word] <= COMMON * pieces] or known
