"""What may be called what: names, logical paths of files, metadata and its fields."""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final

from harness_core.collections.contract import PRINCIPAL_BYTES
from harness_core.collections.faults import InvalidRequestError
from harness_core.collections.filters.fields import FIELD_TYPES
from harness_core.collections.ids import is_id

PATH_BYTES: Final = 1024
METADATA_BYTES: Final = 256 * 1024
METADATA_NAMES: Final = 256
FIELDS: Final = 64
FIELD_CHARS: Final = 128
GRANTS: Final = 10_000

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # after an even number of backslashes
_ENCODED = re.compile(r"%(?:2f|5c|2e|00)", re.IGNORECASE)


def checked_name(name: Any) -> str:
    """The name of a namespace or a collection.

    Raises:
        InvalidRequestError: not 1 to 63 of a-z, 0-9, _ and -, or formed like an id.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or is_id(name):
        raise InvalidRequestError(
            "a name is 1 to 63 of a-z, 0-9, _ and -, begins with a letter or digit", "/name"
        )
    return name


def checked_path(path: Any) -> str:
    """The logical path of a file, NFC; it is never joined with a folder of this machine.

    Raises:
        InvalidRequestError: it does not start with /, is over 1,024 bytes, or holds an empty, ``.``
            or ``..`` segment, a control character, a backslash, or one of these percent-encoded.
    """
    plain = unicodedata.normalize("NFC", path) if isinstance(path, str) else ""
    segments = plain.split("/")[1:]
    bad = (
        not plain.startswith("/")
        or any(segment in ("", ".", "..") for segment in segments)
        or any(unicodedata.category(c) in ("Cc", "Cs") or c == "\\" for c in plain)
        or _ENCODED.search(plain)
        or len(plain.encode("utf-8", "replace")) > PATH_BYTES
    )
    if bad:
        raise InvalidRequestError("the path is not one of a file in a collection", "/path")
    return plain


def checked_fields(fields: Mapping[Any, Any]) -> dict[str, str]:
    """The metadata fields that filters may name, by key.

    Raises:
        InvalidRequestError: over 64, an unusable key, or an unknown type.
    """
    for key, kind in fields.items():
        sound = isinstance(key, str) and 0 < len(key) <= FIELD_CHARS and _clean(key)
        if not sound or kind not in FIELD_TYPES:
            raise InvalidRequestError(
                f"a field is a key of 1 to {FIELD_CHARS} characters and one of "
                f"{', '.join(FIELD_TYPES)}", "/fields",
            )  # fmt: skip
    if len(fields) > FIELDS:
        raise InvalidRequestError(f"a collection lists at most {FIELDS} fields", "/fields")
    return dict(fields)


def checked_metadata(metadata: Mapping[Any, Any] | None) -> dict[str, Any]:
    """A file's metadata as JSON data.

    Raises:
        InvalidRequestError: no JSON object, over 256 KiB or 256 names, or a text with U+0000.
    """
    plain = dict(metadata or {})
    try:
        written = json.dumps(plain, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise InvalidRequestError("metadata is JSON data", "/metadata") from None
    names_ok = all(isinstance(name, str) for name in plain) and len(plain) <= METADATA_NAMES
    if len(written) > METADATA_BYTES or not names_ok or _NUL.search(written):
        raise InvalidRequestError(
            f"metadata has at most {METADATA_NAMES} names and {METADATA_BYTES} bytes, and no NUL",
            "/metadata",
        )
    return plain


def checked_grants(principals: Iterable[Any]) -> list[str]:
    """The principals a file is granted to; ``*`` is everyone who names at least one principal.

    Raises:
        InvalidRequestError: over 10,000, or one that is not 1 to 256 bytes.
    """
    listed = [""] if isinstance(principals, str) else list(principals)
    sound = all(isinstance(p, str) and p and _encodes(p) <= PRINCIPAL_BYTES for p in listed)
    if len(listed) > GRANTS or not sound:
        raise InvalidRequestError("a principal is 1 to 256 bytes", "/principals")
    return list(dict.fromkeys(listed))


def _encodes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass")) if _clean(text) else PRINCIPAL_BYTES + 1


def _clean(text: str) -> bool:
    return not any(unicodedata.category(c) in ("Cc", "Cs") for c in text)
