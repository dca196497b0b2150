"""The key of a request: one, in either header."""

import re
from typing import Final

from starlette.datastructures import Headers

_BEARER = re.compile(r"bearer +(\S+) *", re.IGNORECASE)
_MOST: Final = 256


def token_of(headers: Headers) -> str:
    """The token that a request brings; ``""``, which is no key, when it brings none or too many.

    Both headers may carry the same token. A repeated header, two different tokens, another scheme
    than Bearer, more than 256 bytes and anything but ASCII are no key.
    """
    authorization, api_key = headers.getlist("authorization"), headers.getlist("x-api-key")
    if len(authorization) > 1 or len(api_key) > 1:
        return ""
    tokens = {_bearer(one) for one in authorization} | {one.strip() for one in api_key}
    if len(tokens) != 1:
        return ""
    token = tokens.pop()
    return token if token.isascii() and len(token) <= _MOST else ""


def _bearer(value: str) -> str:
    found = _BEARER.fullmatch(value)
    return found[1] if found else ""
