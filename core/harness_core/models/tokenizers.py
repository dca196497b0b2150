"""How many tokens a text is, by the tokenizer in force, and cutting text to a count."""

import math
import operator
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from typing import Final, Literal, TypeAlias, cast

from harness_core.config import configure, setting
from harness_core.errors import BadSettingError, UnknownMethodError
from harness_core.models.encodings import count_encoded, encoding_name
from harness_core.models.heuristic import estimate_tokens

Counter: TypeAlias = Callable[[str], int]
Counters: TypeAlias = Callable[[list[str]], Sequence[int]]

MARKER: Final = " ... [cut]"
"""What ends a text that was cut."""

_BUILT_IN: Final = ("heuristic", "words", "chars", "tiktoken")
_BLANK: Final = " \t\r\n"
_WORD: Final = re.compile(r"\S+", re.ASCII)
_custom: dict[str, Counters] = {}


# --- choosing -----------------------------------------------------------------------------------


def current_tokenizer() -> str:
    """Name of the tokenizer in force here."""
    return str(setting("tokenizer"))


def set_tokenizer(name: str, fn: Counters | Counter | None = None) -> str:
    """Choose the process's tokenizer, after registering ``fn`` under ``name`` if given.

    ``fn`` takes a list of texts and gives as many counts, or takes one text and gives one count.
    Returns the former name.

    Raises:
        UnknownMethodError: nothing is registered under ``name``.
        BadSettingError: a blank name, or the name of a built-in tokenizer for ``fn``.
    """
    if fn is not None:
        if not name.strip() or name in _BUILT_IN:
            raise BadSettingError(f"a tokenizer cannot be registered as {name!r}")
        _custom[name] = _vectorised(fn)
    _known(name)
    return str(configure(tokenizer=name)["tokenizer"])


def provenance(
    tokenizer: str | None = None, model: str | None = None
) -> Literal["counted", "estimated"]:
    """Whether a count by ``tokenizer`` is the model's own or another one's."""
    own = (tokenizer or current_tokenizer()) == "tiktoken" and encoding_name(model) is not None
    return "counted" if own else "estimated"


def _known(name: str) -> str:
    if name not in _BUILT_IN and name not in _custom:
        listed = ", ".join(sorted((*_BUILT_IN, *_custom)))
        raise UnknownMethodError(f"unknown tokenizer {name!r}; the registered ones are {listed}")
    return name


# --- counting -----------------------------------------------------------------------------------


def count_tokens(text: str | bytes | None, model: str | None = None) -> int:
    """Tokens of one text by the tokenizer in force; blank or missing text is 0.

    ``model`` matters to ``tiktoken`` alone. Bytes that are no UTF-8 are counted one by one.

    Raises:
        UnknownMethodError: the setting names no tokenizer.
        BadSettingError: an encoding that cannot be loaded, or a registered function that does not
            give one whole number at or above 0 per text.
    """
    name = setting("tokenizer")
    if name in _custom:
        return count_many((text,), model)[0]
    return _counter(name, model)(text if type(text) is str else _as_text(text))


def count_many(texts: Iterable[str | bytes | None], model: str | None = None) -> list[int]:
    """``count_tokens`` of each text; a registered function is called once for all of them."""
    name, read = setting("tokenizer"), [_as_text(text) for text in texts]
    if name in _custom:
        asked = [text for text in read if text.strip(_BLANK)]
        counts = iter(_checked(name, asked) if asked else ())
        return [next(counts) if text.strip(_BLANK) else 0 for text in read]
    return list(map(_counter(name, model), read))


def upper_bytes(text: str) -> int:
    """UTF-8 bytes of ``text``: no byte-level tokenizer gives more tokens than that."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _as_text(text: str | bytes | None) -> str:
    if isinstance(text, bytes):
        try:
            return text.decode()
        except UnicodeDecodeError:
            return text.decode("latin-1")
    return text or ""


@lru_cache(maxsize=256)
def _counter(name: str, model: str | None) -> Counter:
    match _known(name):
        case "words":
            return lambda text: len(text.split())
        case "chars":
            return lambda text: -(-len(text) // 4) if text.strip(_BLANK) else 0
        case "tiktoken":
            return _encoded(encoding_name(model))
        case _:
            return _estimated


def _remembered(count: Counter) -> Counter:
    """``count``, remembering many short texts and few long ones."""
    short, long = lru_cache(maxsize=8192)(count), lru_cache(maxsize=16)(count)
    return lambda text: short(text) if len(text) < 32_768 else long(text)


_estimated = _remembered(estimate_tokens)


@cache
def _encoded(encoding: str | None) -> Counter:
    return _remembered(lambda text: count_encoded(text, encoding) if text.strip(_BLANK) else 0)


def _vectorised(fn: Counters | Counter) -> Counters:
    """``fn`` as a function of a list: it is one when it gives a sequence for a list."""
    try:
        many = hasattr(fn(["probe"]), "__len__")  # type: ignore[arg-type] # that is the question
    except (TypeError, AttributeError):
        many = False
    return cast(Counters, fn) if many else lambda texts: list(map(cast(Counter, fn), texts))


def _checked(name: str, texts: list[str]) -> list[int]:
    found = _custom[name](texts)
    try:
        counts = [operator.index(count) for count in found]
    except TypeError:
        counts = []
    if len(counts) != len(texts) or min(counts) < 0:
        raise BadSettingError(
            f"the tokenizer {name!r} gives one whole number at or above 0 per text; "
            f"for {len(texts)} it gave {found!r}"
        )
    return counts


# --- cutting ------------------------------------------------------------------------------------


def truncate_tokens(
    text: str, n: float | None, marker: str = MARKER, *, model: str | None = None
) -> str:
    """The start of ``text`` as written, at most ``n`` tokens with ``marker`` at its end.

    The cut falls after a whole word, or inside a word that alone counts more than 16 tokens or
    where no whole word fits. The marker is left out where it would take half of ``n`` or more.
    Infinite ``n`` leaves the text as it is; None, NaN, zero and below give ``""``.
    """
    if n is None or not n > 0:
        return ""
    if n == math.inf or count_tokens(text, model) <= n:
        return text
    for ending in (marker, "") if count_tokens(marker, model) < n / 2 else ("",):
        if size := _kept(text, n, ending, model):
            return text[:size] + ending
    return ""


def _kept(text: str, n: float, ending: str, model: str | None) -> int:
    """Characters to keep: up to the last word that fits, or into a very long one after it."""

    def over(size: int) -> bool:
        return count_tokens(text[:size] + ending, model) > n

    reach = 256  # no more is counted than needed: the text may be a book, and n a line
    while reach < len(text) and not over(reach):
        reach *= 2
    ends = [word.end() for word in _WORD.finditer(text, 0, reach)]
    if reach < len(text) and ends and ends[-1] == reach:
        ends.pop()  # perhaps not the end of a word
    whole = bisect_left(ends, True, key=over)
    kept = ends[whole - 1] if whole else 0
    word = _WORD.search(text, kept)
    if word is None or (whole and count_tokens(word[0][:1024], model) <= 16):
        return kept
    inside = range(word.start() + 1, min(word.end(), reach) + 1)
    return inside[more - 1] if (more := bisect_left(inside, True, key=over)) else kept
