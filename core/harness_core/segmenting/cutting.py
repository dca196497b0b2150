"""Cutting text at a token count: the longest run that fits, hard splits, tails.

Pieces are slices, so white space inside them is the document's own. A piece fits because it was
measured as it is, never because its parts add up.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import regex

from harness_core.models import count_tokens
from harness_core.ranking.sentences import sentence_spans

_WORD = regex.compile(r"\S+")
_UNSPACED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
)


class Spans(NamedTuple):
    """Where the sentences, words or characters of a text start and end."""

    starts: Sequence[int]
    ends: Sequence[int]


def word_spans(text: str) -> Spans:
    """The words of a text: what stands between white space."""
    return _spans([match.span() for match in _WORD.finditer(text)])


def longest(measure: Callable[[int], int], most: int, cap: int, *, guess: int) -> int:
    """The largest n up to ``most`` with ``measure(n) <= cap``, 0 when not even 1 fits.

    ``measure`` grows with n, nearly in proportion; ``guess`` is where to look first. What is
    measured is never much longer than twice the result or the guess.
    """
    fits, over, tries = 0, most + 1, 0
    while over - fits > 1:
        probe = min(max(guess, fits + 1), over - 1)
        cost = measure(probe)
        if cost <= cap:
            fits = probe
        else:
            over = probe
        tries += 1
        guess = min(probe * cap // max(cost, 1), 2 * probe)
        if tries > 5:  # not in proportion after all
            guess = (fits + over) // 2 if over <= most else 2 * probe
    return fits


def hard_split(text: str, cap: int) -> list[str]:
    """Pieces of ``text`` of at most ``cap`` tokens: whole sentences, else words, else characters.

    A single character above the cap stays a piece of its own. Time is near-linear in the text.
    """
    if count_tokens(text) <= cap:
        return [text]
    return list(_split(text, cap, (_sentences, word_spans, _characters)))


def split_characters(text: str, cap: int) -> list[str]:
    """Pieces of at most ``cap`` tokens that add up to ``text``, cut between characters."""
    return list(_split(text, cap, (_characters,)))


def tail(text: str, most: int) -> str:
    """The end of ``text``, at most ``most`` tokens: all of it, else whole sentences, else words.

    Text without spaces, or of one word, is cut between characters; otherwise ``""`` when nothing
    fits.
    """
    if most < 1:
        return ""
    if count_tokens(text) <= most:
        return text
    levels = [_sentences, word_spans]
    if len(text.split(None, 1)) == 1 or _UNSPACED.search(text[-most:]):
        levels.append(_characters)
    for level in levels:
        start = _tail_start(text, level(text).starts, most)
        if start is not None:
            return text[start:]
    return ""


def _tail_start(text: str, starts: Sequence[int], most: int) -> int | None:
    def measure(count: int) -> int:
        return count_tokens(text[starts[-count] :])

    near = len(starts) - bisect_right(starts, len(text) - 4 * most)
    found = longest(measure, len(starts), most, guess=near)
    return starts[-found] if found else None


def _split(text: str, cap: int, levels: Sequence[Callable[[str], Spans]]) -> Iterator[str]:
    level, *finer = levels
    starts, ends = level(text)
    place, guess = 0, 1 if finer else cap
    while place < len(starts):

        def measure(count: int, place: int = place) -> int:
            return count_tokens(text[starts[place] : ends[place + count - 1]])

        found = longest(measure, len(starts) - place, cap, guess=guess)
        piece = text[starts[place] : ends[place + max(found, 1) - 1]]
        if found or not finer:
            yield piece
        else:
            yield from _split(piece, cap, finer)
        place += max(found, 1)
        guess = found or guess


def _sentences(text: str) -> Spans:
    return _spans(sentence_spans(text))


def _characters(text: str) -> Spans:
    return Spans(range(len(text)), range(1, len(text) + 1))


def _spans(found: Sequence[tuple[int, int]]) -> Spans:
    return Spans([start for start, _ in found], [end for _, end in found])
