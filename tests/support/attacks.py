"""What two requests were told, made comparable: responses up to their ids."""

import re
from typing import Any

import httpx

_IDS = re.compile(r"(req|fil|col)_[0-9A-HJKMNP-TV-Z]{26}")
_OWN_HEADERS = ("date", "x-request-id", "x-engine-request-id")


def told(response: httpx.Response, names: dict[str, str] | None = None) -> Any:
    """Status, headers and body of a response; ids as ``names`` has them, else by their kind."""

    def plain(found: re.Match[str]) -> str:
        return (names or {}).get(found[0], f"<{found[1]}>")

    headers = {k: v for k, v in response.headers.items() if k not in _OWN_HEADERS}
    if names:
        headers.pop("content-length", None)  # names are not as long as ids
    return response.status_code, headers, _IDS.sub(plain, response.text)
