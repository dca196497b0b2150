"""A server of the contract that is not ours: it says what it was told to say.

with Foreign((503, BUSY), (200, EXAMPLE)) as server:
    EngineClient(server.url, "key").collection("acme", "docs").answer({"query": "x"})
    assert len(server.asked) == 2
"""

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

EXAMPLE: dict[str, Any] = {
    "request_id": "req_foreign",
    "answer": "The pool of connections was exhausted [[SRC:0001]].",
    "effort": "medium",
    "sources": [
        {
            "ref": "SRC:0001",
            "span": {
                "file_id": "fil_01K6Q6N7D8E9F0G1H2J3K4M5N6", "unit": "chars", "start": 0, "end": 77
            },
            "path": "/reports/incident.txt",
            "content_type": "text/plain",
            "score": 0.81,
            "cited": True,
        }
    ],
    "usage": {"credits": 1},
}  # fmt: skip


def fault(code: str, *, retryable: bool = False, **details: Any) -> dict[str, Any]:
    """An error in the contract's form."""
    said = {"code": code, "message": "no", "request_id": "req_foreign", "details": details}
    return {"error": {**said, "retryable": retryable}}


class Foreign:
    """The server, running from ``with`` to its end; a body that is no mapping is sent as HTML."""

    def __init__(self, *answers: tuple[int, Mapping[str, Any] | str]) -> None:
        self.answers = list(answers)
        self.asked: list[bytes] = []

    def __enter__(self) -> Self:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.asked.append(self.rfile.read(int(self.headers["content-length"])))
                status, body = outer.answers.pop(0)
                kind = "text/html" if isinstance(body, str) else "application/json"
                data = (body if isinstance(body, str) else json.dumps(body)).encode()
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"
