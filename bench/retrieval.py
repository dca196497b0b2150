"""Retrieval at the size of small and large collections: words, rules of access, vectors.

Texts and questions draw their words as a language does (Zipf over 50,000), 100 to 200 a piece and
20 pieces a file. A time is that of the whole way from a question to checked passages.
"""

import string
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeVar

import numpy as np

from harness_core.collections import EFFORTS
from harness_core.collections.filters import compile_filter
from harness_core.collections.retrieval import Scope, retrieved
from harness_core.collections.searching import Search
from harness_core.collections.sqlite.store import SqliteStore
from harness_core.collections.store import Access, CollectionInfo, Piece, TextForm, Vectors

T = TypeVar("T")
SIZES: Final = (10_000, 200_000)
WORDS: Final = 50_000
PER_FILE: Final = 20
PRINCIPALS: Final = 200
QUESTIONS: Final = 20
DIMENSIONS: Final = 384
SECONDS: Final = {10_000: (0.02, 0.1), 200_000: (0.1, 0.3)}
"""By size, the most that the median and the worst of the questions may take."""
ALL_SECONDS: Final = {10_000: (0.03, 0.1), 200_000: (0.15, 0.3)}
"""The same where many principals see all: each word is looked up in each file."""
COSINE_SECONDS: Final = {10_000: (0.03, 0.1), 200_000: (0.3, 0.6)}
"""The same for vectors: they are read from the file each time, and no memory is kept for them."""
BUILD_SECONDS: Final = {10_000: 10.0, 200_000: 180.0}
HALF: Final = {"field": "metadata.team", "op": "lt", "value": 5}


def rows() -> list[dict[str, Any]]:
    """Building and asking, by size."""
    return [row for pieces in SIZES for row in _rows_of(pieces)]


def _rows_of(pieces: int) -> Iterator[dict[str, Any]]:
    with _store() as store:
        space = store.create_namespace("bench")

        def filled(name: str, access: Access) -> CollectionInfo:
            return store.create_collection(space.id, name, access, {"team": "number"})

        plain, guarded = filled("plain", "off"), filled("guarded", "enforced")
        yield _built(store, plain, pieces, vectors=True)
        yield _built(store, guarded, pieces, vectors=False)
        asked = _Asked(store, pieces)
        yield asked.words("8 words, access off", plain)
        yield asked.words("8 words, access off, a filter for half", plain, None, HALF)
        yield asked.words("8 words, 50 principals and a filter", guarded, 50, HALF)
        all_seen = ALL_SECONDS[pieces]
        yield asked.words("8 words, 4,096 principals who see all", guarded, 4096, most=all_seen)
        yield asked.words("SEC71, 64 words, the same", guarded, 4096, words=64, most=(1.0, 2.0))
        yield asked.cosines(f"exact cosines of {DIMENSIONS} numbers", plain)


@contextmanager
def _store() -> Iterator[SqliteStore]:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder, "bench.sqlite3"))
        yield store
        store.close()


# --- texts ----------------------------------------------------------------------------------------


class _Language:
    """Words, common ones more often than rare ones; the same texts for the same seed."""

    def __init__(self, seed: int) -> None:
        letters = string.ascii_lowercase
        three = [a + b + c for a in letters for b in letters for c in letters]
        words = [word + end for end in ("", "en", "ing") for word in three][:WORDS]
        self.words = np.array(words, dtype=object)
        shares = np.cumsum(1 / np.arange(1, WORDS + 1))
        self.shares = shares / shares[-1]
        self.numbers = np.random.default_rng(seed)

    def drawn(self, count: int) -> list[str]:
        """Words of running text."""
        places = np.searchsorted(self.shares, self.numbers.random(count))
        found: list[str] = self.words[places].tolist()
        return found

    def question(self, words: int) -> str:
        """So many different words, as a text holds them."""
        found: dict[str, None] = {}
        while len(found) < words:
            found |= dict.fromkeys(self.drawn(words))
        return " ".join(list(found)[:words])

    def form(self, vectors: Vectors | None) -> TextForm:
        """The text of a file, in pieces."""
        counts = self.numbers.integers(100, 201, PER_FILE).tolist()
        texts = [" ".join(self.drawn(count)) for count in counts]
        stops = [stop - 2 for stop in accumulate(len(text) + 2 for text in texts)]
        pieces = [
            Piece(start=stop - len(text), stop=stop)
            for text, stop in zip(texts, stops, strict=True)
        ]
        return TextForm(text="\n\n".join(texts), pieces=tuple(pieces), vectors=vectors)


def _built(
    store: SqliteStore, made: CollectionInfo, pieces: int, *, vectors: bool
) -> dict[str, Any]:
    """How long it takes to add the files."""
    began = time.perf_counter()
    _fill(store, made, pieces, vectors=vectors)
    seconds, most = time.perf_counter() - began, BUILD_SECONDS[pieces]
    more = f", {DIMENSIONS} numbers each" if vectors else ""
    return {
        "what": f"{pieces:,} pieces added, access {made.access_control}{more}",
        "value": f"{seconds:.0f} s", "target": f"under {most:.0f} s", "met": seconds < most,
    }  # fmt: skip


def _fill(store: SqliteStore, made: CollectionInfo, pieces: int, *, vectors: bool) -> None:
    language, numbers = _Language(1), np.random.default_rng(1)
    for place in range(pieces // PER_FILE):
        store.add_file(
            made.id, path=f"/{place:06}.txt", content_type="text/plain", data=str(place).encode(),
            metadata={"team": place % 10}, principals=[f"group:{place % PRINCIPALS}"],
        )  # fmt: skip
        claim = store.claim(60)
        if claim is None:
            raise AssertionError("unreachable: the file was added just now")
        store.finish(claim, language.form(_vectors(numbers, PER_FILE) if vectors else None))


def _vectors(numbers: np.random.Generator, count: int) -> Vectors:
    drawn = numbers.standard_normal((count, DIMENSIONS), dtype=np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return Vectors(model="bench", rows=drawn)


# --- questions ------------------------------------------------------------------------------------


class _Asked:
    """Rows of questions asked in one store."""

    def __init__(self, store: SqliteStore, pieces: int) -> None:
        self.store, self.pieces = store, pieces
        self.language, self.numbers = _Language(2), np.random.default_rng(2)

    def words(
        self,
        what: str,
        made: CollectionInfo,
        principals: int | None = None,
        given: dict[str, Any] | None = None,
        *,
        words: int = 8,
        most: tuple[float, float] | None = None,
    ) -> dict[str, Any]:
        """From questions of so many words to passages."""
        who = None if principals is None else [f"group:{number}" for number in range(principals)]
        scope = Scope(node=compile_filter(given, made.metadata_fields), principals=who)
        plan = EFFORTS["medium"]

        def ask(question: str) -> object:
            with self.store.snapshot(made.id) as snapshot:
                search = Search(lines=(question,))
                return retrieved(snapshot, self.store.ranker, scope, search, plan)

        questions = [self.language.question(words) for _ in range(QUESTIONS)]
        return self._row(what, ask, questions, most)

    def cosines(self, what: str, made: CollectionInfo) -> dict[str, Any]:
        """From vectors to the 20 nearest pieces of all."""

        def ask(vectors: Vectors) -> object:
            with self.store.snapshot(made.id) as snapshot:
                files = snapshot.visible(compile_filter(None, {}), None)
                return snapshot.nearest(files, vectors, 20)

        drawn = [_vectors(self.numbers, 1) for _ in range(QUESTIONS)]
        return self._row(what, ask, drawn, COSINE_SECONDS[self.pieces])

    def _row(
        self,
        what: str,
        ask: Callable[[T], object],
        questions: Sequence[T],
        most: tuple[float, float] | None,
    ) -> dict[str, Any]:
        """The median and the worst of the questions."""
        ask(questions[0])  # what is loaded at the first question takes its own time
        seconds = [_seconds(ask, question) for question in questions]
        middle, worst = most or SECONDS[self.pieces]
        return {
            "what": f"{self.pieces:,} pieces: {what}", "median ms": 1000 * median(seconds),
            "worst ms": 1000 * max(seconds),
            "target": f"{1000 * middle:.0f} ms, worst {1000 * worst:.0f} ms",
            "met": median(seconds) < middle and max(seconds) < worst,
        }  # fmt: skip


def _seconds(ask: Callable[[T], object], question: T) -> float:
    began = time.perf_counter()
    found = ask(question)
    taken = time.perf_counter() - began
    if not found:
        raise AssertionError("nothing was found")
    return taken
