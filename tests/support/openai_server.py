"""A small server on this machine that speaks Responses, Chat Completions (both streamed as well)
and Embeddings. It answers by a function, or with what a test has queued, and keeps every request.

    with OpenAIServer(reply=lambda messages: "42") as server:
        client = OpenAIClient(base_url=server.url, api_key="test-key")
        server.queue(status=429, headers={"Retry-After": "0"})
        server.queue_tool_calls(("look_up", {"name": "x"}))
        ...
        assert server.requests[0].path == "/v1/responses"
"""

import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Json = dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """One request as it arrived; header names are in lower case, doubled ones are lists."""

    method: str
    path: str
    headers: Mapping[str, Any]
    body: Any


@dataclass(frozen=True)
class Scripted:
    """What the next request gets: a status, headers and a body, or a reply's text or tool calls.

    ``drop`` closes the connection without an answer; ``events`` are sent as a stream as they are.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    text: str | None = None
    tool_calls: Sequence[tuple[str, Json]] = ()
    finish: str | None = None
    events: Sequence[Any] | None = None
    drop: bool = False
    drop_after: int | None = None


def echo(messages: Sequence[Json]) -> str:
    """The default reply: the last message's first words, so that a test can foresee it."""
    words = _text(messages[-1].get("content")).split()
    return "echo: " + " ".join(words[:12])


class OpenAIServer:
    """The server, running from ``with`` to its end. ``reply`` is given a request's messages."""

    def __init__(
        self,
        reply: Callable[[Sequence[Json]], str] = echo,
        *,
        usage: Callable[[Sequence[Json], str], tuple[int, int]] | None = None,
        dimensions: int = 8,
        port: int = 0,
    ) -> None:
        self.reply = reply
        self.usage = usage or _words
        self.dimensions = dimensions
        self.requests: list[Seen] = []
        self.most_at_once = 0
        self._at_once = 0
        self._queue: deque[Scripted] = deque()
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", port), _Handler)
        self._http.server = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def bodies(self) -> list[Any]:
        """The bodies of all requests so far."""
        return [seen.body for seen in self.requests]

    def queue(self, times: int = 1, **scripted: Any) -> None:
        """Answer the next requests with this instead; see ``Scripted``."""
        with self._lock:
            self._queue.extend([Scripted(**scripted)] * times)

    def queue_tool_calls(self, *calls: tuple[str, Json]) -> None:
        """Answer the next request with calls of tools: (name, arguments)."""
        self.queue(tool_calls=calls, finish="tool_calls")

    def take(self, seen: Seen) -> Scripted:
        """Keep a request and say what it gets."""
        with self._lock:
            self.requests.append(seen)
            return self._queue.popleft() if self._queue else Scripted()

    def enter(self, step: int) -> None:
        """Count the requests being answered right now."""
        with self._lock:
            self._at_once += step
            self.most_at_once = max(self.most_at_once, self._at_once)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    server: OpenAIServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: Any

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        server: OpenAIServer = self.server.server
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers: dict[str, Any] = {}
        for name in {one.lower() for one in self.headers}:
            values = self.headers.get_all(name) or []
            headers[name] = values[0] if len(values) == 1 else values
        seen = Seen(self.command, self.path, headers, json.loads(raw or b"null"))
        scripted = server.take(seen)
        server.enter(1)
        try:
            self._answer(server, seen, scripted)
        finally:
            server.enter(-1)

    def _answer(self, server: OpenAIServer, seen: Seen, scripted: Scripted) -> None:
        if scripted.drop:
            self.close_connection = True
            return
        if scripted.status != 200 or scripted.body is not None:
            body = scripted.body if scripted.body is not None else _error(scripted.status)
            self._send(scripted, body)
        elif scripted.events is not None:
            self._stream(scripted, scripted.events)
        else:
            self._reply(server, seen, scripted)

    def _reply(self, server: OpenAIServer, seen: Seen, scripted: Scripted) -> None:
        endpoint = seen.path.partition("?")[0].rpartition("/")[2]
        if endpoint == "embeddings":
            self._send(scripted, _embeddings(seen.body, server.dimensions))
            return
        make, events = (_chat, _chat_events) if endpoint == "completions" else (_response, _events)
        whole = make(server, seen.body, scripted)
        if seen.body.get("stream"):
            self._stream(scripted, list(events(whole, seen.body)))
        else:
            self._send(scripted, whole)

    def _send(self, scripted: Scripted, body: Any) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **scripted.headers}
        self.send_response(scripted.status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def _stream(self, scripted: Scripted, events: Sequence[Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, event in enumerate(events):
            if number == scripted.drop_after:
                self.wfile.flush()
                self.close_connection = True
                return
            data = event if isinstance(event, str) else json.dumps(event)
            name = (
                f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
            )
            self._chunk(f"{name}data: {data}\n\n")
        self._chunk("")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


def _error(status: int) -> Json:
    return {"error": {"message": f"scripted failure {status}", "type": "scripted", "code": None}}


def _messages(body: Json) -> list[Json]:
    if "messages" in body:
        return list(body["messages"])
    given = body.get("input") or []
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
    rules = body.get("instructions")
    return [{"role": "system", "content": rules}, *messages] if rules else messages


def _said(server: OpenAIServer, body: Json, scripted: Scripted) -> tuple[str, int, int]:
    messages = _messages(body)
    text = "" if scripted.tool_calls else scripted.text
    text = server.reply(messages) if text is None else text
    return text, *server.usage(messages, text)


def _words(messages: Sequence[Json], text: str) -> tuple[int, int]:
    given = sum(len(_text(one.get("content")).split()) for one in messages)
    return given + 4 * len(messages), len(text.split()) + 1


def _chat(server: OpenAIServer, body: Json, scripted: Scripted) -> Json:
    text, given, said = _said(server, body, scripted)
    message: Json = {"role": "assistant", "content": text or None, "refusal": None}
    if scripted.tool_calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for number, (name, arguments) in enumerate(scripted.tool_calls, 1)
        ]
    choice = {"index": 0, "message": message, "finish_reason": scripted.finish or "stop"}
    return {
        "id": f"chatcmpl-{len(server.requests)}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body["model"],
        "system_fingerprint": "fp_local",
        "choices": [{**choice, "logprobs": None}],
        "usage": {
            "prompt_tokens": given,
            "completion_tokens": said,
            "total_tokens": given + said,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _chat_events(whole: Json, body: Json) -> Iterator[Any]:
    message, finish = whole["choices"][0]["message"], whole["choices"][0]["finish_reason"]
    head = {name: whole[name] for name in ("id", "created", "model", "system_fingerprint")}
    head["object"] = "chat.completion.chunk"

    def chunk(delta: Json, reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return {**head, "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(message["content"] or ""):
        yield chunk({"content": piece})
    for number, call in enumerate(message.get("tool_calls", ())):
        yield chunk({"tool_calls": [{"index": number, **call}]})
    yield chunk({}, finish)
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": whole["usage"]}
    yield "[DONE]"


def _response(server: OpenAIServer, body: Json, scripted: Scripted) -> Json:
    text, given, said = _said(server, body, scripted)
    number = len(server.requests)
    calls = [
        {
            "type": "function_call",
            "id": f"fc_{number}_{place}",
            "call_id": f"call_{place}",
            "name": name,
            "arguments": json.dumps(arguments),
            "status": "completed",
        }
        for place, (name, arguments) in enumerate(scripted.tool_calls, 1)
    ]
    part = {"type": "output_text", "text": text, "annotations": []}
    spoken = {"type": "message", "id": f"msg_{number}", "status": "completed", "role": "assistant"}
    cut = scripted.finish == "length"
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "model": body["model"],
        "output": calls or [{**spoken, "content": [part]}],
        "parallel_tool_calls": True,
        "temperature": body.get("temperature", 1.0),
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": given,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": said,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": given + said,
        },
    }


def _events(whole: Json, _body: Json) -> Iterator[Any]:
    bare = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "sequence_number": 0, "response": bare}
    for place, item in enumerate(whole["output"]):
        started = {**item, "status": "in_progress"}
        opened: Json = {"content": []} if item["type"] == "message" else {"arguments": ""}
        known = {"output_index": place, "item_id": item["id"], "sequence_number": place + 1}
        yield {"type": "response.output_item.added", **known, "item": {**started, **opened}}
        if item["type"] == "message":
            text = {**known, "content_index": 0, "logprobs": []}
            empty = {"type": "output_text", "text": "", "annotations": []}
            yield {"type": "response.content_part.added", **text, "part": empty}
            for piece in _pieces(item["content"][0]["text"]):
                yield {"type": "response.output_text.delta", **text, "delta": piece}
            said = item["content"][0]["text"]
            yield {"type": "response.output_text.done", **text, "text": said}
        else:
            arguments = item["arguments"]
            yield {"type": "response.function_call_arguments.delta", **known, "delta": arguments}
        yield {"type": "response.output_item.done", **known, "item": item}
    yield {"type": f"response.{whole['status']}", "sequence_number": 99, "response": whole}


def _embeddings(body: Json, dimensions: int) -> Json:
    given = body["input"]
    texts = [given] if isinstance(given, str) or (given and isinstance(given[0], int)) else given
    rows = [
        {"object": "embedding", "index": number, "embedding": _vector(text, dimensions)}
        for number, text in enumerate(texts)
    ]
    tokens = sum(len(text.split()) if isinstance(text, str) else len(text) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": body["model"], "data": rows, "usage": usage}


def _vector(text: Any, dimensions: int) -> list[float]:
    row = [0.0] * dimensions
    for code in text.encode() if isinstance(text, str) else text:
        row[code % dimensions] += 1.0
    row[0] += 1.0
    return row


def _pieces(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return " ".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
