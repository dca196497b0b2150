"""Images for questions: small ones, and as large as one may be."""

import base64
import struct
import zlib


def png(width: int = 1, height: int = 1, *, size: int = 0) -> bytes:
    """A PNG that says it is that large, filled up to ``size`` bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + body).ljust(size, b"\0")


def image(data: bytes | str, media_type: str = "image/png") -> dict[str, str]:
    """The member ``query_image`` of a request."""
    text = data if isinstance(data, str) else base64.b64encode(data).decode()
    return {"data": text, "media_type": media_type}
