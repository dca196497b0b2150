# ruff: noqa: RUF001 - marks and letters of other scripts are the subject here
"""The stretch of a text that a piece is closest to, and the edits between the two."""

from collections.abc import Iterator
from dataclasses import dataclass

import regex

from harness_core.checks.folding import Folded

_CUTOFF = 70
_MOST_CELLS = 4_000_000_000
_LONG, _SEEDS = 50_000, 8
_SEED = regex.compile(r"\w{3,} \w{3,}")
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}|]")
_MISREAD = 0.25
_MOST_BLOCK = 40

_CONFUSED = frozenset(
    frozenset(pair)
    for pair in (
        *(("l", "1"), ("l", "i"), ("l", "|"), ("1", "i"), ("1", "|"), ("i", "|")),
        *(("o", "0"), ("rn", "m"), ("cl", "d"), ("vv", "w"), ("c", "e"), ("s", "5"), ("b", "8")),
        *(("g", "9"), ("u", "v"), ("ſ", "f"), ("ſ", "s")),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A part of a text, from ``start`` up to ``stop``."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One run of differences: ``start`` to ``stop`` of the piece, and what stands there instead.

    ``cost`` is in characters; below 1 the words are the same but for misread letters.
    """

    start: int
    stop: int
    instead: str
    cost: float


class TooLongError(Exception):
    """A piece and a text too long to be compared, and no words of the one place it in the other."""


def closest(piece: str, text: str) -> Stretch | None:
    """The stretch of ``text`` with the fewest edits to ``piece``; None when none is anywhere near.

    Raises ``TooLongError`` when comparing them would take too long.
    """
    window = _seeded(piece, text) or _window(piece, text)
    if window is None:
        return None
    near = text[window.start : window.stop]
    stop = _best_end(piece, near)
    start = stop - _best_end(piece[::-1], near[:stop][::-1])
    return Stretch(start=window.start + start, stop=window.start + stop)


def _seeded(piece: str, text: str) -> Stretch | None:
    """Where two pairs of words of ``piece``, each of them unique in a long text, place it."""
    if len(text) < _LONG or len(piece) ** 2 > _MOST_CELLS:
        return None
    seeds = [*_SEED.finditer(piece)]
    places: list[int] = []
    for seed in seeds[:: max(1, len(seeds) // _SEEDS)]:
        at = text.find(seed[0])
        if at >= 0 and text.find(seed[0], at + 1) < 0:
            place = at - seed.start()
            if any(abs(place - other) <= len(piece) // 4 for other in places):
                return _around(place, place + len(piece), piece, text)
            places.append(place)
    return None


def _window(piece: str, text: str) -> Stretch | None:
    from rapidfuzz.fuzz import partial_ratio_alignment

    if len(piece) * len(text) > _MOST_CELLS:
        raise TooLongError
    found = partial_ratio_alignment(piece, text, score_cutoff=_CUTOFF)
    if found is None:
        return None
    return _around(found.dest_start, found.dest_end, piece, text)


def _around(start: int, stop: int, piece: str, text: str) -> Stretch:
    margin = len(piece) // 3 + 12
    return Stretch(start=max(0, start - margin), stop=min(len(text), stop + margin))


def _best_end(piece: str, text: str) -> int:
    """Where in ``text`` the closest match of ``piece`` ends, its start being free.

    The bit-parallel algorithm of Myers (1999), on Python's integers.
    """
    rows = (1 << len(piece)) - 1
    top = 1 << (len(piece) - 1)
    equal: dict[str, int] = {}
    for at, char in enumerate(piece):
        equal[char] = equal.get(char, 0) | 1 << at
    plus, minus, score = rows, 0, len(piece)
    best, best_end = score, 0
    for end, char in enumerate(text, 1):
        same = equal.get(char, 0)
        below = same | minus
        across = (((same & plus) + plus) ^ plus) | same
        up = minus | ~(across | plus) & rows
        down = plus & across
        score += bool(up & top) - bool(down & top)
        up, down = (up << 1) & rows, (down << 1) & rows
        plus = down | ~(below | up) & rows
        minus = up & below
        if score <= best:
            best, best_end = score, end
    return best_end


def edits_between(piece: Folded, text: Folded, stretch: Stretch) -> list[Edit]:
    """The edits that turn ``piece`` into ``stretch`` of ``text``, runs of them taken together."""
    from rapidfuzz.distance import Levenshtein

    there = text.norm[stretch.start : stretch.stop]
    runs: list[list[int]] = []
    for step in Levenshtein.opcodes(piece.norm, there):
        if step.tag == "equal":
            continue
        if runs and runs[-1][1] == step.src_start and runs[-1][3] == step.dest_start:
            runs[-1][1], runs[-1][3] = step.src_end, step.dest_end
        else:
            runs.append([step.src_start, step.src_end, step.dest_start, step.dest_end])
    edits = []
    for start, stop, begun, ended in runs:
        instead = there[begun:ended]
        broken = _has(piece.breaks, start, stop) or _has(
            text.breaks, stretch.start + begun, stretch.start + ended
        )
        free = broken and _is_line_break(piece.norm[start:stop], instead)
        cost = 0.0 if free else _cost(piece.norm, start, stop, instead)
        edits.append(Edit(start=start, stop=stop, instead=instead, cost=cost))
    return edits


def _has(breaks: frozenset[int], start: int, stop: int) -> bool:
    return any(at in breaks for at in range(start, stop + 1))


def _is_line_break(here: str, there: str) -> bool:
    return not (here and there) and not (here + there).strip(" -")


def _cost(piece: str, start: int, stop: int, instead: str) -> float:
    """Edits from ``piece[start:stop]`` to ``instead``; a misreading of letters is a part of one."""
    here = piece[start:stop]
    if max(len(here), len(instead)) > _MOST_BLOCK:
        return float(max(len(here), len(instead)))
    left = _lettered(piece[max(0, start - _MOST_BLOCK) : start][::-1])
    right = _lettered(piece[stop : stop + _MOST_BLOCK])
    row = [float(at) for at in range(len(instead) + 1)]
    rows = [row]
    for i in range(1, len(here) + 1):
        row = [float(i)]
        for j in range(1, len(instead) + 1):
            same = here[i - 1] == instead[j - 1]
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (not same))
            row.append(min([best, *_misread(rows, here[:i], instead[:j], (left, right))]))
        rows.append(row)
    return rows[-1][-1]


def _misread(
    rows: list[list[float]], here: str, there: str, sides: tuple[bool, bool]
) -> Iterator[float]:
    """What it costs when the last letters of one are the last of the other misread."""
    for m, n in ((1, 1), (1, 2), (2, 1)):
        pair = frozenset((here[-m:], there[-n:]))
        if m <= len(here) and n <= len(there) and pair in _CONFUSED:
            letters = all(part.isalpha() for part in pair)
            if any(sides) if letters else all(sides):
                yield rows[len(here) - m][len(there) - n] + _MISREAD


def _lettered(text: str) -> bool:
    """Whether the word that ``text`` opens with, figures included, has a letter."""
    for char in text:
        if char.isalpha():
            return True
        if not _WORD.match(char):
            return False
    return False
