"""How much of a quotation that is not in its source nevertheless stands there in one run."""

from collections.abc import Sequence
from itertools import islice

import regex

from harness_core.checks.normalise import UNSPACED, Normal, trimmed
from harness_core.checks.sources import Places, Source

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
    units = [
        found.span()
        for found in islice(_UNIT.finditer(text), _MOST_UNITS)
        if _CONTENT.search(found[0])
    ]
    longest = 0
    for first in range(len(units)):
        while first + longest < len(units) and _stands(
            text[units[first][0] : units[first + longest][1]], source
        ):
            longest += 1
    return longest / len(units) if units else 0.0


def _stands(run: str, source: Source) -> bool:
    piece = trimmed(Normal(run, run))
    return bool(piece.norm) and Places(piece, source, most=_MOST_PLACES).any()
