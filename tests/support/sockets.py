"""Requests written by hand, for what no client would send."""

import contextlib
import socket

import httpx

from tests.support.engine import World, path_of


def post(
    w: World, *head: str, body: bytes = b"", key: str | None = "K", collection: str = "docs"
) -> socket.socket:
    """A question whose further header lines, and whose body, are as they are."""
    url = httpx.URL(w.url)
    connection = socket.create_connection((url.host, url.port or 80), timeout=30)
    lines = [
        f"POST {path_of(collection)} HTTP/1.1", "host: x", "content-type: application/json",
        *([f"authorization: Bearer {w.keys[key]}"] if key else []), *head, "", "",
    ]  # fmt: skip
    connection.sendall("\r\n".join(lines).encode() + body)
    return connection


def everything(connection: socket.socket) -> bytes:
    """What comes until the other side closes, also where it does so at once."""
    told = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65_536):
            told += piece
    return told


def pushed(connection: socket.socket, piece: bytes, times: int) -> int:
    """How many times a piece could be sent before the other side would take no more."""
    for count in range(times):
        try:
            connection.sendall(piece)
        except OSError:
            return count
    return times
