"""How much of a quotation that is not in its source nevertheless stands there in one run."""

from collections.abc import Sequence
from itertools import islice

import regex

from harness_core.checks.normalise import UNSPACED, Normal, trimmed
from harness_core.checks.sources import JUNCTION, Places, Source

_UNIT = regex.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
_CONTENT = regex.compile(r"[\p{L}\p{N}]")
_MOST_UNITS = 300
_MOST_PLACES = 2000


def run_share(pieces: Sequence[Normal], source: Source) -> float:
    """The longest run of units of ``pieces`` that is in ``source``, as a share of all, 0 to 1.

    Units are words, or single characters of scripts that do not space their words; the first 300
    count.
    """
    text = " ".join(piece.norm for piece in pieces)
    found = (unit.span() for unit in _UNIT.finditer(text) if _CONTENT.search(unit[0]))
    units = list(islice(found, _MOST_UNITS))
    parted = [not _may_follow(text, end, source) for _, end in units]
    longest = 0
    for first in range(len(units)):
        at = 0
        while at >= 0 and first + longest < len(units) and not any(parted[first : first + longest]):
            at = _stands(text[units[first][0] : units[first + longest][1]], source, at)
            longest += at >= 0
    return longest / len(units) if units else 0.0


def _stands(run: str, source: Source, since: int) -> int:
    """The first place of ``run`` from ``since`` on; -1 when there is none."""
    piece = trimmed(Normal(run, run))
    places = Places(piece, source, most=_MOST_PLACES, since=since).after(since)
    return next(places, (-1, -1))[0] if piece.norm else -1


def _may_follow(text: str, end: int, source: Source) -> bool:
    """Whether the source may hold the words on both sides of the space at ``end``."""
    around = text[max(0, end - JUNCTION) : end + 1 + JUNCTION]
    plain = around[:JUNCTION].isalnum() and around[JUNCTION + 1 :].isalnum()
    whole = len(around) == 2 * JUNCTION + 1 and around[JUNCTION] == " "
    return not (plain and whole) or around in source.junctions
