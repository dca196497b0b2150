"""Fetching a web address: checked, pinned to the checked hosts, bounded, its type decided."""

import contextlib
import http.client
import io
import re
import socket
import ssl
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import Message
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final
from urllib.parse import quote, unquote, urljoin, urlsplit

from harness_core.config import setting
from harness_core.documents.addresses import as_ip, host_of, is_local_name, is_public, shown
from harness_core.documents.decoding import looks_utf16
from harness_core.documents.extractors.registry import known_extensions
from harness_core.errors import TooLargeError, UnsupportedFormatError, UrlError

LIMIT: Final = 512 * 2**20  # bytes
_REDIRECTS: Final = 10
_PIECE: Final = 64 * 2**10
_AGENT: Final = "harness-integrations"
_TYPES: Final = {
    "application/pdf": "pdf", "application/x-pdf": "pdf", "text/html": "html",
    "application/xhtml+xml": "xhtml", "text/csv": "csv", "text/tab-separated-values": "tsv",
    "text/markdown": "md", "text/x-markdown": "md", "image/png": "png", "image/jpeg": "jpg",
    "image/tiff": "tiff", "image/gif": "gif", "image/bmp": "bmp",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
}  # fmt: skip
_PAGE = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)

Resolve = Callable[[str, int], list[str]]


class _TooLarge(TooLargeError, UrlError, code="too_large"):
    """A download past the limit, by class both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """A page on disk, its extension and the charset its server declared."""

    path: Path
    extension: str
    charset: str | None


def resolved(host: str, port: int) -> list[str]:
    """The addresses of a host name; none when it cannot be resolved."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@contextlib.contextmanager
def downloaded(
    address: str, *, resolve: Resolve = resolved, limit: int = LIMIT
) -> Iterator[Download]:
    """The page at ``address`` in a temporary folder that goes when the block ends.

    Raises:
        UrlError: addresses are off, a host that may not be asked, or any failure.
        TooLargeError: more than 512 MB (an ``UrlError`` as well).
        UnsupportedFormatError: a page that is no document.
    """
    if not setting("allow_urls"):
        raise UrlError(
            f"{shown(address)}: web addresses are not read unless the setting allow_urls is on"
        )
    with tempfile.TemporaryDirectory(prefix="harness-") as folder:
        path = Path(folder) / "page"
        try:
            last, headers = _fetch(address, path, resolve, limit)
        except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
            if isinstance(error, UrlError):
                raise
            raise UrlError(f"{shown(address)} could not be read: {_reason(error)}") from None
        with path.open("rb") as file:
            extension = _extension(last, headers, file)
        yield Download(
            path=path.rename(path.with_suffix("." + extension)),
            extension=extension,
            charset=headers.get_content_charset(),
        )


def _reason(error: Exception) -> str:
    # an address may stand in an error's text, so only its kind and the system's words are shown
    words = getattr(error, "strerror", None) or getattr(error, "reason", None)
    return f"{type(error).__name__}{f' ({words})' if isinstance(words, str) else ''}"


def _fetch(address: str, path: Path, resolve: Resolve, limit: int) -> tuple[str, Message]:
    timeout = float(setting("request_timeout"))
    deadline = time.monotonic() + timeout
    for _ in range(_REDIRECTS + 1):
        with (
            contextlib.closing(_connection(address, resolve, timeout)) as connection,
            contextlib.closing(_answer(connection, address)) as response,
        ):
            if response.status in (301, 302, 303, 307, 308) and response.headers["Location"]:
                address = urljoin(address, response.headers["Location"])
                continue
            if response.status != 200:
                raise UrlError(f"{shown(address)}: {response.status} {response.reason}")
            with path.open("wb") as file:
                _copy(response, file, address, limit, deadline)
            return address, response.headers
    raise UrlError(f"{shown(address)}: more than {_REDIRECTS} redirects")


def _answer(connection: http.client.HTTPConnection, address: str) -> http.client.HTTPResponse:
    headers = {"User-Agent": _AGENT, "Accept": "*/*", "Accept-Encoding": "identity"}
    connection.request("GET", _target(address), headers=headers)
    return connection.getresponse()


def _connection(address: str, resolve: Resolve, timeout: float) -> http.client.HTTPConnection:
    host, port = host_of(address)
    hosts = _checked(address, host, port, resolve)
    if urlsplit(address).scheme.lower() == "https":
        return _PinnedTls(host, port, hosts, timeout)
    return _Pinned(host, port, hosts, timeout)


def _checked(address: str, host: str, port: int, resolve: Resolve) -> list[str]:
    """The addresses of the host, all of them public unless local ones are allowed."""
    ip = as_ip(host)
    hosts = [str(ip)] if ip is not None else resolve(host, port)
    if not setting("allow_local_urls"):
        found = [as_ip(one) for one in hosts]
        if is_local_name(host) or not all(one is not None and is_public(one) for one in found):
            raise UrlError(
                f"{shown(address)} is a local or private address; the setting allow_local_urls "
                "lets it be read"
            )
    if not hosts:
        raise UrlError(f"{shown(address)}: the host has no address")
    return hosts


class _Pinned(http.client.HTTPConnection):
    """Connects to the checked addresses, never to what the name resolves to meanwhile."""

    def __init__(self, host: str, port: int, hosts: list[str], timeout: float) -> None:
        super().__init__(host, port, timeout=timeout)
        self._hosts = hosts

    def connect(self) -> None:
        failure: OSError | None = None
        for host in self._hosts:
            try:
                self.sock = socket.create_connection((host, self.port), self.timeout)
            except OSError as error:
                failure = error
            else:
                return
        raise failure or OSError("no address")


class _PinnedTls(_Pinned):
    """The same under TLS; the certificate is checked for the name."""

    default_port = 443

    def connect(self) -> None:
        super().connect()
        context = ssl.create_default_context()
        self.sock = context.wrap_socket(self.sock, server_hostname=self.host)


def _target(address: str) -> str:
    parts = urlsplit(address)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return quote(target, safe="%/:?#[]@!$&'()*+,;=~-._|")


def _copy(
    response: http.client.HTTPResponse, file: IO[bytes], address: str, limit: int, deadline: float
) -> None:
    declared = response.headers.get("Content-Length", "")
    if declared.isdigit() and int(declared) > limit:
        raise _TooLarge(f"{shown(address)}: {int(declared)} bytes, at most {limit} are read")
    unpack = _unpacker(response.headers.get("Content-Encoding", ""))
    total = 0
    while piece := response.read(_PIECE):
        plain = unpack(piece)
        total += len(plain)
        if total > limit:
            raise _TooLarge(f"{shown(address)}: more than {limit} bytes")
        if time.monotonic() > deadline:
            raise UrlError(f"{shown(address)}: not complete within request_timeout")
        file.write(plain)


def _unpacker(encoding: str) -> Callable[[bytes], bytes]:
    match encoding.strip().lower():
        case "" | "identity":
            return bytes
        case "gzip" | "x-gzip" | "deflate":
            packed: Any = zlib.decompressobj(zlib.MAX_WBITS | 32)
            return lambda piece: bytes(packed.decompress(piece))
        case other:
            raise UrlError(f"content encoding {other!r} is not read")


def _extension(address: str, headers: Message, file: IO[bytes]) -> str:
    """The declared type, else the extension in the address, else what the page begins like."""
    declared = headers.get_content_type() if "Content-Type" in headers else ""
    if declared in _TYPES:
        return _TYPES[declared]
    suffix = PurePosixPath(unquote(urlsplit(address).path)).suffix.lower().removeprefix(".")
    if suffix in known_extensions():
        return suffix
    if declared and not _says_nothing(declared):
        raise UnsupportedFormatError(f"{shown(address)} is {declared}, which no extractor reads")
    return _sniffed(address, headers, file)


def _says_nothing(declared: str) -> bool:
    return declared == "text/plain" or declared.endswith(
        ("octet-stream", "download", "binary", "unknown", "x-unknown", "force-download", "xml",
         "zip")
    )  # fmt: skip


def _sniffed(address: str, headers: Message, file: IO[bytes]) -> str:
    head = file.read(1024)
    if head.startswith(b"%PDF"):
        return "pdf"
    if head.startswith(b"PK\x03\x04"):
        if _is_word(head + file.read()):
            return "docx"
        raise UnsupportedFormatError(f"{shown(address)} is a ZIP archive and no Word file")
    if _PAGE.search(head):
        return "html"
    charset = (headers.get_content_charset() or "").replace("_", "-").lower()
    if looks_utf16(head) or charset.startswith(("utf-16", "utf-32")):
        return "txt"
    if b"\0" in head:
        raise UnsupportedFormatError(f"{shown(address)} is binary data")
    return "txt"


def _is_word(data: bytes) -> bool:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return "word/document.xml" in archive.namelist()
    except zipfile.BadZipFile:
        return False
