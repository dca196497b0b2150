"""Whether a quotation says the value it was given for."""

import math

import regex

from harness_core.checks.numbers import read_numbers
from harness_core.checks.passages import whole_piece
from harness_core.checks.quotations import is_verbatim
from harness_core.checks.sources import Places, Source

_UNREAD = regex.compile(r"[\p{L}--[\p{sc=Latin}\p{sc=Han}\p{sc=Common}]]", regex.VERSION1)
_TOLERANCE = 1e-9
_PASSAGE_CHARS = 12


def carries_value(
    value: object,
    field_type: str,
    quotation: str,
    source: str | Source | None,
) -> bool:
    """Whether ``quotation`` is in ``source`` and states ``value`` of a field of ``field_type``.

    For an integer or number its absolute value must be among the numbers that the quotation states
    in any form; where the quotation states none and is in a script whose number words are not read,
    any passage will do. For other types a passage of two words or 12 characters will do, or one
    that contains the value.
    """
    return is_verbatim(quotation, source) is True and states(value, field_type, quotation)


def states(value: object, field_type: str, quotation: str) -> bool:
    """Whether ``quotation`` states ``value``, wherever it stands; see ``carries_value``."""
    if field_type not in ("integer", "number") or isinstance(value, bool):
        return _is_passage(quotation) or _contains(quotation, str(value))
    try:
        wanted = abs(float(str(value)))
    except ValueError:
        return False
    stated = read_numbers(quotation)
    if not stated and _UNREAD.search(quotation):
        return _is_passage(quotation)
    return any(math.isclose(wanted, one, rel_tol=_TOLERANCE) for one in stated)


def _is_passage(quotation: str) -> bool:
    piece = whole_piece(quotation)
    return piece is not None and (" " in piece.norm or len(piece.norm) >= _PASSAGE_CHARS)


def _contains(quotation: str, value: str) -> bool:
    piece = whole_piece(value)
    return piece is not None and Places(piece, Source(quotation)).any()
