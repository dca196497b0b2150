"""Counting and ranking: the heuristic beside tiktoken, our BM25 beside rank-bm25.

Run ``python -m bench.counting``. The text is generated from a fixed seed; each time is the best of
several rounds, taken in turns.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

from bench.encodings import use_shipped
from bench.timing import interleaved
from harness_core.models import tokenizers
from harness_core.models.encodings import count_encoded
from harness_core.models.heuristic import estimate_tokens
from harness_core.ranking import BM25
from harness_core.ranking.terms import terms

ROUNDS = 5


def chunks(n: int, words: int = 150) -> list[str]:
    """About a kilobyte of prose-like text each, words by a Zipf law."""
    dice = random.Random(11)  # noqa: S311 - text, no secret
    letters = "etaoinshrdlu"
    vocabulary = ["".join(dice.choices(letters, k=dice.randint(2, 10))) for _ in range(20_000)]
    weights = [1 / rank for rank in range(1, len(vocabulary) + 1)]
    return [" ".join(_punctuated(dice.choices(vocabulary, weights, k=words))) for _ in range(n)]


def _punctuated(words: list[str]) -> Iterator[str]:
    for place, word in enumerate(words):
        yield word.capitalize() if place % 12 == 0 else f"{word}." if place % 12 == 11 else word


def best(**calls: Callable[[], object]) -> list[float]:
    """Seconds of each call, the best of several rounds taken in turns."""
    return [min(seconds) for seconds in interleaved(calls, ROUNDS).values()]


def counting(n: int = 500) -> list[dict[str, Any]]:
    """Microseconds per kilobyte, and how often each is faster than tiktoken."""
    use_shipped()
    texts = chunks(n)
    kilobytes = sum(map(len, texts)) / 1000
    tokenizers.count_many(texts)
    taken = best(
        exact=lambda: [count_encoded(text, "o200k_base") for text in texts],
        estimated=lambda: [estimate_tokens(text) for text in texts],
        known=lambda: tokenizers.count_many(texts),
    )
    names = ("tiktoken o200k_base", "heuristic", "heuristic, seen before")
    return [
        {"what": name, "us_per_kb": seconds / kilobytes * 1e6, "ratio": taken[0] / seconds}
        for name, seconds in zip(names, taken, strict=True)
    ]


def ranking(n: int = 2_000) -> list[dict[str, Any]]:
    """Milliseconds to index (words included) and per query, beside rank-bm25 on the same words."""
    from rank_bm25 import BM25Okapi  # type: ignore[import-untyped] # it ships no types

    texts = chunks(n)
    query = " ".join(texts[n // 2].split()[:12])
    ours, other = BM25(texts), BM25Okapi([terms(text) for text in texts])
    taken = best(
        their_index=lambda: BM25Okapi([terms(text) for text in texts]),
        our_index=lambda: BM25(texts),
        their_query=lambda: other.get_scores(terms(query)),
        our_query=lambda: ours.scores(query),
    )
    names = ("rank-bm25 index", "BM25 index", "rank-bm25 query", "BM25 query")
    return [
        {
            "what": f"{name}, {n} chunks",
            "ms": seconds * 1e3,
            "ratio": taken[place // 2 * 2] / seconds,
        }
        for place, (name, seconds) in enumerate(zip(names, taken, strict=True))
    ]


def rows() -> list[dict[str, Any]]:
    """One row per measurement; ``ratio`` is how many times faster than the first of its kind."""
    return counting() + ranking()


if __name__ == "__main__":
    for row in rows():
        figure = next(f"{row[unit]:10.3f} {unit}" for unit in ("us_per_kb", "ms") if unit in row)
        print(f"{row['what']:32}{figure:20}{row['ratio']:8.1f}x")
