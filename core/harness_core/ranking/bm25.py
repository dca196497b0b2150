"""BM25 in the Lucene form: every term a text shares with the query counts above zero.

score = sum over query terms of idf * f * (k1 + 1) / (f + k1 * (1 - b + b * length / mean length)),
idf = ln(1 + (N - n + 0.5) / (n + 0.5)), k1 = 1.5, b = 0.75.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from harness_core.ranking.terms import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

K1: Final = 1.5
B: Final = 0.75


class BM25:
    """An index over texts; built once, asked often, never changed."""

    __slots__ = ("_documents", "_first", "_vocabulary", "_weights", "size")

    def __init__(self, texts: Sequence[str]) -> None:
        import numpy as np

        self.size = len(texts)
        self._vocabulary: dict[str, int] = {}
        number = self._vocabulary.setdefault
        words: list[int] = []
        lengths = np.zeros(self.size)
        for place, text in enumerate(texts):
            before = len(words)
            words += [number(term, len(self._vocabulary)) for term in terms(text)]
            lengths[place] = len(words) - before
        self._index(np.asarray(words, dtype=np.int64), lengths)

    def _index(self, words: "NDArray[np.int64]", lengths: "NDArray[np.float64]") -> None:
        """Postings sorted by term: where each term's begin, their documents and weights."""
        import numpy as np

        documents = np.repeat(np.arange(self.size), lengths.astype(np.int64))
        pairs, found = np.unique(words * max(self.size, 1) + documents, return_counts=True)
        term, self._documents = np.divmod(pairs, max(self.size, 1))
        known = np.bincount(term, minlength=len(self._vocabulary))
        self._first = np.concatenate(([0], np.cumsum(known)))
        idf = np.log1p((self.size - known + 0.5) / (known + 0.5))
        mean = lengths[lengths > 0].mean() if lengths.any() else 1.0
        norm = K1 * (1 - B + B * lengths / mean)
        self._weights = idf[term] * found * (K1 + 1) / (found + norm[self._documents])

    def scores(self, query: str) -> "NDArray[np.float64]":
        """One score per text, at or above 0; 0 where the query and the text share no term."""
        import numpy as np

        total = np.zeros(self.size)
        for term in dict.fromkeys(terms(query)):
            number = self._vocabulary.get(term)
            if number is not None:
                postings = slice(self._first[number], self._first[number + 1])
                total[self._documents[postings]] += self._weights[postings]
        return total
