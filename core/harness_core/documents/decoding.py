"""Bytes to text: byte-order marks, UTF-16 without one, UTF-8, a declared charset, Windows-1252."""

import re
from typing import Final

from harness_core.errors import BrokenDocumentError

_MARKS: Final = (  # the four-byte marks first: the UTF-16LE mark is a prefix of the UTF-32LE one
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_UNITS: Final = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
_SAMPLE: Final = 4096
_TEXT_BYTES: Final = frozenset({9, 10, 13, *range(32, 127), *range(160, 256)})
_CONTROLS: Final = bytes(code for code in range(32) if code not in (8, 9, 10, 12, 13, 27))
_SIGNATURES: Final = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive (such as a Word, Excel or EPUB file)"),
    (b"\xd0\xcf\x11\xe0", "an old or encrypted Office file"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"{\\rtf", "an RTF file"),
)
_META = re.compile(rb"<meta[^>]{0,500}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_DECLARED = re.compile(rb"^\s*<\?xml[^>]{0,500}?encoding\s*=\s*[\"']([\w.:-]+)", re.IGNORECASE)


def decode(data: bytes, charset: str | None = None) -> str:
    """``data`` as text; ``charset`` is what a server said, trusted only where UTF-8 does not fit.

    Line ends become LF and a leading byte-order mark goes. Never fails.
    """
    marked = _marked(data)
    if marked and marked != "utf-8":
        return _tidy(_wide(data, marked))
    if (guess := _guess(data)) is not None:
        return _tidy(_wide(data, guess))
    plain = _strictly(data, "utf-8")
    if plain is None or b"\0" in data:
        plain = _as_declared(data, charset) or plain
    return _tidy(plain if plain is not None else _western(data))


def decode_html(data: bytes, charset: str | None = None) -> str:
    """``data`` as a page: a mark, UTF-8, the server, the page's own word, UTF-16, Windows-1252."""
    marked = _marked(data)
    if marked:
        return _tidy(_wide(data, marked))
    if b"\0" not in data and (plain := _strictly(data, "utf-8")) is not None:
        return _tidy(plain)
    head = data[:_SAMPLE]
    said = [match.group(1).decode() for rule in (_META, _DECLARED) if (match := rule.search(head))]
    for name in (charset, *said):
        if (text := _as_declared(data, name)) is not None:
            return _tidy(text)
    guess = _guess(data)
    return _tidy(_wide(data, guess) if guess else _western(data))


def require_text(data: bytes, name: str) -> None:
    """Refuse what is no text, whatever its name says.

    Raises:
        BrokenDocumentError: the message says what was found.
    """
    if found := signature(data):
        raise BrokenDocumentError(f"{name} is {found}, not text")
    if _marked(data) or _guess(data):
        return
    head = data[:_SAMPLE]
    controls = len(head) - len(head.translate(None, _CONTROLS))
    undecodable = b"\0" in head and _strictly(data, "utf-8") is None
    if undecodable or controls > 0.05 * len(head):
        raise BrokenDocumentError(f"{name} holds binary data, not text")


def signature(data: bytes) -> str | None:
    """What kind of file ``data`` begins like, in words; None for what has no signature."""
    return next((what for magic, what in _SIGNATURES if data.startswith(magic)), None)


def looks_utf16(data: bytes) -> bool:
    """Whether ``data`` has a wide byte-order mark or the zero pattern of UTF-16."""
    return _marked(data) in _UNITS or _guess(data) is not None


def _marked(data: bytes) -> str | None:
    return next((name for mark, name in _MARKS if data.startswith(mark)), None)


def _guess(data: bytes) -> str | None:
    """UTF-16 by its zeros: one parity nearly all zero, the other nearly none and all text."""
    if len(data) < 32 or b"\0" not in data:
        return None
    sample = data[: _SAMPLE if len(data) >= _SAMPLE else len(data) // 2 * 2]
    halves = sample[0::2], sample[1::2]
    zeros = [half.count(0) / len(half) for half in halves]
    for name, full, empty in (("utf-16-le", 0, 1), ("utf-16-be", 1, 0)):
        if zeros[empty] >= 0.9 and zeros[full] <= 0.02:
            share = sum(byte in _TEXT_BYTES for byte in halves[full]) / len(halves[full])
            return name if share >= 0.9 else None
    return None


def _wide(data: bytes, encoding: str) -> str:
    unit = _UNITS.get(encoding, 1)
    return data[: len(data) // unit * unit].decode(encoding, "replace")


def _as_declared(data: bytes, charset: str | None) -> str | None:
    name = (charset or "").strip().strip("\"'").lower()
    if not name or name.replace("_", "-") in {"utf-8", "utf8"}:
        return None
    if name.replace("_", "-") in {"iso-8859-1", "iso8859-1", "latin1", "latin-1", "l1"}:
        return _western(data)
    return _strictly(data, name)


def _strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError, ValueError):
        return None


def _western(data: bytes) -> str:
    text = _strictly(data, "cp1252")
    return data.decode("latin-1") if text is None else text


def _tidy(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
