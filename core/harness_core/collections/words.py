"""The words of a text as they are indexed and asked for, in any script, as plain ASCII tokens.

An index that only ever sees ASCII words does not depend on how a database splits or folds text.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from harness_core.collections.store import TextForm
from harness_core.ranking.terms import terms

MOST_ASKED: Final = 64

_INNER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_LATIN_MARKS = re.compile("[\u0300-\u036f]")
_IDENTIFIER = re.compile(r"[A-Za-z0-9]+")


def indexed(text: str) -> list[str]:
    """The tokens of a text: words folded, pairs of CJK characters, parts of identifiers."""
    return [_ascii(word) for word in terms(_folded(text), 1)] + list(_parts(text))


def words_of(form: TextForm) -> list[list[str]]:
    """The tokens of each piece."""
    return [indexed(form.text[piece.start : piece.stop]) for piece in form.pieces]


def asked(query: str) -> list[str]:
    """The tokens of a query, each once, at most 64."""
    return list(dict.fromkeys(indexed(query)))[:MOST_ASKED]


def _folded(text: str) -> str:
    if text.isascii():
        return text
    return _LATIN_MARKS.sub("", unicodedata.normalize("NFKD", text.casefold()))


def _parts(text: str) -> Iterator[str]:
    """The parts of words such as connectionPool or error404."""
    for word in _IDENTIFIER.findall(text):
        parts = _INNER.split(word)
        if len(parts) > 1:
            yield from (part.lower() for part in parts)


def _ascii(word: str) -> str:
    return word if word.isascii() else "0x" + word.encode("utf-8", "replace").hex()
