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
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_CHARS = 4  # of a token, to begin with


class Spans(NamedTuple):
    """Where the sentences, words or characters of a text start and end."""

    starts: Sequence[int]
    ends: Sequence[int]


class Fit(NamedTuple):
    """How many units fit (0 when not even one does), their tokens, and characters per cap."""

    units: int
    tokens: int
    chars: int


def longest(
    measure: Callable[[int], int],
    length: Callable[[int], int],
    most: int,
    cap: int,
    *,
    chars: int = 0,
    exact: bool = True,
) -> Fit:
    """The largest run of 1 to ``most`` units with ``measure(n) <= cap`` tokens.

    ``length(n)`` is the run's characters, ``chars`` about as many as will fit: what is measured is
    never much longer than twice that or the result. Both functions grow with n. Unless ``exact``,
    a run over half the cap is taken without measuring what by its own density does not fit.
    """
    fits, tokens, over, tries = 0, 0, most + 1, 0
    chars = chars or _CHARS * cap
    while over - fits > 1:
        within = bisect_right(range(1, over), chars, lo=fits, key=length)
        probe = min(max(within, fits + 1), over - 1)
        size, cost, tries = length(probe), measure(probe), tries + 1
        chars = size * cap // max(cost, 1)
        if cost > cap:
            over = probe
        else:
            fits, tokens = probe, cost
            if not exact and probe < most and _full(size, cost, cap, length(probe + 1) - size):
                break
        if tries > 5 and over <= most:  # not in proportion after all
            chars = length((fits + over) // 2)
        elif chars > 2 * size or tries > 5:
            chars = 2 * size
    return Fit(fits, tokens, chars)


def _full(size: int, cost: int, cap: int, more: int) -> bool:
    """Whether ``more`` characters go over the cap by the density of what is there."""
    return 2 * cost > cap and more * cost > (cap - cost) * size


def word_spans(text: str) -> Spans:
    """The words of a text: what stands between white space."""
    return _spans([match.span() for match in _WORD.finditer(text)])


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
        starts = level(text).starts
        if kept := _kept(text, starts, most):
            return text[starts[-kept] :]
    return ""


def tail_words(text: str, most: int) -> int:
    """How many words at the end of ``text`` have at most ``most`` tokens."""
    return _kept(text, word_spans(text).starts, most) if most > 0 else 0


def _kept(text: str, starts: Sequence[int], most: int) -> int:
    return longest(
        lambda count: count_tokens(text[starts[-count] :]),
        lambda count: len(text) - starts[-count],
        len(starts),
        most,
    ).units


def _split(text: str, cap: int, levels: Sequence[Callable[[str], Spans]]) -> Iterator[str]:
    level, *finer = levels
    starts, ends = level(text)
    first, chars = 0, 0
    while first < len(starts):
        fit = longest_slice(text, Spans(starts, ends), first, cap, chars=chars)
        end = first + max(fit.units, 1)
        piece = text[starts[first] : ends[end - 1]]
        if fit.units or not finer:
            yield piece
        else:
            yield from _split(piece, cap, finer)
        first, chars = end, fit.chars


def longest_slice(text: str, spans: Spans, first: int, cap: int, *, chars: int) -> Fit:
    """``longest`` for what ``text`` holds from its span number ``first`` on."""
    starts, ends = spans
    start, before = starts[first], first - 1
    return longest(
        lambda count: count_tokens(text[start : ends[before + count]]),
        lambda count: ends[before + count] - start,
        len(starts) - first,
        cap,
        chars=chars,
    )


def _sentences(text: str) -> Spans:
    return _spans(sentence_spans(text))


def _characters(text: str) -> Spans:
    return Spans(range(len(text)), range(1, len(text) + 1))


def _spans(found: Sequence[tuple[int, int]]) -> Spans:
    return Spans([start for start, _ in found], [end for _, end in found])
