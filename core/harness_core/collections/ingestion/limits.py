"""What processing one file may take, and why a file failed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from harness_core.errors import HarnessError

FILE_BYTES: Final = 100 * 2**20

Code = Literal[
    "unsupported_type", "too_large", "no_text", "encrypted", "corrupt", "extract_timeout",
    "zip_limits",
]  # fmt: skip


class IngestFault(HarnessError, code="ingest_fault"):
    """A file that does not become text; ``reason`` is a code, the message names no file."""

    def __init__(self, reason: Code, message: str) -> None:
        super().__init__(reason, message)
        self.reason = reason

    def __str__(self) -> str:
        return str(self.args[1])

    def as_json(self) -> dict[str, Any]:
        """The error of a failed file."""
        return {"code": self.reason, "message": str(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on one file: seconds, bytes of memory, pages, characters, and what a ZIP may hold.

    ``lease_seconds`` is when a file whose process died may be taken up by another one. Embedding
    its pieces has ``embedding_seconds`` of its own, which the lease is longer by.
    """

    seconds: float = 120.0
    lease_seconds: float = 240.0
    embedding_seconds: float = 120.0
    memory_bytes: int = 2 * 2**30
    pages: int = 10_000
    characters: int = 20_000_000
    zip_bytes: int = 200 * 2**20
    zip_entry_bytes: int = 100 * 2**20
    zip_ratio: int = 200
    zip_entries: int = 5_000
    piece_tokens: int = 350

    def as_json(self) -> dict[str, Any]:
        """The limits as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "Limits":
        """The limits again."""
        return cls(**given)
