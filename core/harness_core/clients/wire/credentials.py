"""Which key and which headers go out with a request, and which never do."""

import os
import re
from collections.abc import Mapping

from harness_core.errors import AuthError, BadKeyError, HeaderError

Headers = Mapping[str, str | None]
"""Header values by name; None keeps a header from being sent."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SENDABLE = re.compile(r"[\x20-\x7e]*")


def resolve_key(given: str | None) -> str | None:
    """The API key in force now: the argument, then OPENAI_API_KEY; blanks are no key.

    Raises:
        BadKeyError: a key that no header can carry; the message never shows it.
    """
    for key in (given, os.environ.get("OPENAI_API_KEY")):
        stripped = (key or "").strip()
        if not _SENDABLE.fullmatch(stripped):
            raise BadKeyError(
                "the API key holds a control or non-ASCII character (a line break from copying, "
                "perhaps); it was not sent"
            )
        if stripped:
            return stripped
    return None


def checked_headers(given: object, *, whose: str = "headers") -> Headers:
    """A header set that can be sent; names differing only in case are one, the last one.

    Raises:
        HeaderError: naming the header, never its value; ``whose`` says where the set came from.
    """
    if not isinstance(given, Mapping):
        raise HeaderError(f"{whose}: a header set maps names to values")
    kept: dict[str, tuple[str, str | None]] = {}
    for name, value in given.items():
        if not isinstance(name, str) or not name:
            raise HeaderError(f"{whose}: every header needs a name")
        if not _TOKEN.fullmatch(name):
            raise HeaderError(f"{whose}: {name!r} is no legal header name")
        kept[name.lower()] = (name, None if value is None else _value(name, value, whose))
    return dict(kept.values())


def _value(name: str, value: object, whose: str) -> str:
    if not isinstance(value, (str, int, float)):
        raise HeaderError(f"{whose}: header {name!r} needs one single value")
    text = str(value).strip(" ")
    if not _SENDABLE.fullmatch(text):
        raise HeaderError(f"{whose}: the value of header {name!r} holds a character none may hold")
    if not text:
        raise HeaderError(
            f"{whose}: header {name!r} is empty; is the environment variable it comes from set?"
        )
    return text


def sent_headers(key: str | None, headers: Headers) -> Headers:
    """What goes out: the caller's headers, and the key as bearer token unless they say otherwise.

    Raises:
        AuthError: neither a key nor a header.
    """
    if key is None and not headers:
        raise AuthError(
            "no API key: set OPENAI_API_KEY, pass api_key=, or name the headers your endpoint "
            "asks for with headers="
        )
    if any(name.lower() == "authorization" for name in headers):
        return headers
    return {"Authorization": None if key is None else f"Bearer {key}", **headers}


def redacted(text: str, headers: Headers) -> str:
    """``text`` without any header value in it: some proxies echo what they were sent."""
    for value in headers.values():
        secret = (value or "").removeprefix("Bearer ")
        if len(secret) >= 8:
            text = text.replace(secret, "[secret]")
    return text
