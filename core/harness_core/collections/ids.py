"""Identifiers: a prefix and 26 characters that sort by time of making."""

import re
import secrets
import time
from typing import Final

_LETTERS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ID = re.compile(r"(ns|col|fil|req)_[0-9A-HJKMNP-TV-Z]{26}")


def new_id(prefix: str) -> str:
    """A new identifier: milliseconds since 1970 and 80 random bits, in Crockford's base 32."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return f"{prefix}_" + "".join(_LETTERS[number >> shift & 31] for shift in range(125, -1, -5))


def new_request_id() -> str:
    """A new request id."""
    return new_id("req")


def is_id(given: str) -> bool:
    """Whether ``given`` has the form of an identifier; no name has."""
    return _ID.fullmatch(given) is not None
