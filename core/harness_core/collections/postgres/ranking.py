"""Word search inside the visible files: the postings of the asked words, scored here."""

from collections.abc import Iterator, Sequence
from typing import Any

from harness_core.collections.postgres.snapshot import PostgresSnapshot
from harness_core.collections.postings import unpacked
from harness_core.collections.scoring import Count, Postings, best, fts5, lucene, scored, telling
from harness_core.collections.store import FileSet, Ranked, Snapshot
from harness_core.collections.words import asked


class PostgresRanker:
    """The ranker of the PostgreSQL store."""

    def rank(self, snapshot: Snapshot, files: FileSet, query: str, limit: int) -> list[Ranked]:
        """The best pieces, best first; none that shares no word with the query."""
        if not isinstance(snapshot, PostgresSnapshot):
            raise TypeError("this ranker reads snapshots of the PostgreSQL store")
        words = asked(query)
        if not words or not files.pieces:
            return []
        enforced = snapshot.info.access_control == "enforced"
        inside = None if _is_every(snapshot, files) else sorted(files.ids)
        counted = inside if enforced else None
        often = _often(snapshot, words, counted)
        kept = telling(often, files.pieces)
        found = ((often[word], postings) for word, postings in _found(snapshot, kept, inside))
        form = lucene if enforced else fts5
        chunks, scores = scored(found, _count(snapshot, counted), form)
        return best(chunks, scores, limit, lambda near: _placed(snapshot, near))


def _is_every(snapshot: PostgresSnapshot, files: FileSet) -> bool:
    return snapshot.counts().get("ready", 0) == len(files.ids)


def _often(
    snapshot: PostgresSnapshot, words: Sequence[str], inside: Sequence[int] | None
) -> dict[str, int]:
    """In how many pieces each word is, in the order of the query."""
    found = _by_word(snapshot, "sum(pieces)", words, inside)
    return {word: found[word] for word in words if word in found}


def _found(
    snapshot: PostgresSnapshot, words: Sequence[str], inside: Sequence[int] | None
) -> Iterator[tuple[str, Postings]]:
    found = _by_word(snapshot, "string_agg(places, '')", words, inside)
    for word in words:
        if word in found:
            yield word, unpacked(found[word])


def _by_word(
    snapshot: PostgresSnapshot, what: str, words: Sequence[str], inside: Sequence[int] | None
) -> dict[str, Any]:
    """What the postings of each word say, in those files alone (None: in all)."""
    within, files = ("", []) if inside is None else (" AND file = ANY(%s)", [inside])
    rows = snapshot.connection.execute(
        f"SELECT word, {what} AS said FROM posting "  # noqa: S608 - our own words
        f"WHERE collection = %s AND word = ANY(%s){within} GROUP BY word",
        (snapshot.number, list(words), *files),
        binary=True,
    )
    return {row["word"]: row["said"] for row in rows}


def _count(snapshot: PostgresSnapshot, inside: Sequence[int] | None) -> Count:
    within, files = ("", []) if inside is None else (" AND id = ANY(%s)", [inside])
    row = snapshot.connection.execute(
        "SELECT sum(pieces)::bigint AS pieces, sum(words)::bigint AS words FROM file "  # noqa: S608 - our own words
        f"WHERE collection = %s AND status = 'ready'{within}",
        (snapshot.number, *files),
    ).fetchone()
    return Count(row["pieces"], row["words"]) if row else Count(0, 0)


def _placed(snapshot: PostgresSnapshot, chunks: Sequence[int]) -> list[tuple[int, int]]:
    rows = snapshot.connection.execute(
        "SELECT c.id, c.file FROM chunk c JOIN file f ON f.id = c.file WHERE c.id = ANY(%s) "
        "ORDER BY f.path, c.start, f.fid",
        (list(chunks),),
    )
    return [(row["id"], row["file"]) for row in rows]
