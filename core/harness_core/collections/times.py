"""Moments as integers: microseconds since the beginning of year 1, UTC, as filters compare them."""

import time
from datetime import UTC, date, datetime, timedelta
from typing import Final

_EPOCH: Final = date(1970, 1, 1).toordinal() * 86_400_000_000


def now_us() -> int:
    """Now."""
    return time.time_ns() // 1000 + _EPOCH


def shown(moment: int) -> str:
    """A moment as RFC 3339 writes it."""
    found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment - _EPOCH)
    return found.isoformat(timespec="microseconds").replace("+00:00", "Z")
