"""The lines of a streamed reply, joined into the body that a plain reply would have had."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from harness_core.client import OnText
from harness_core.messages import clean_text


class Events:
    """Reads server-sent events line by line; a subclass takes them one by one."""

    def __init__(self, on_text: OnText) -> None:
        self.begun = False
        self._on_text = on_text
        self._data: list[str] = []

    def add(self, line: str, /) -> None:
        """Take one line; the text of an event that it completes is passed on at once.

        Raises:
            json.JSONDecodeError: an event that is no JSON.
        """
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        elif not line and self._data:
            data, self._data = "\n".join(self._data), []
            event = None if data.startswith("[DONE]") else json.loads(data)
            if isinstance(event, Mapping):
                self.take(event)

    def take(self, event: Mapping[str, Any], /) -> None:
        """Take one event."""
        raise NotImplementedError  # pragma: no cover - every subclass defines it

    def show(self, piece: Any) -> None:
        """Pass on a piece of the reply's text."""
        if isinstance(piece, str) and piece:
            self.begun = True
            self._on_text(clean_text(piece))


class ChatEvents(Events):
    """Joins the chunks of a Chat Completions stream."""

    def __init__(self, on_text: OnText) -> None:
        super().__init__(on_text)
        self._body: dict[str, Any] = {}
        self._message = {"content": "", "refusal": ""}
        self._finish: str | None = None

    def take(self, event: Mapping[str, Any], /) -> None:
        """Keep what the chunk says and add its text."""
        for name in ("id", "model", "system_fingerprint", "usage", "error"):
            if event.get(name) is not None:
                self._body[name] = event[name]
        for choice in event.get("choices") or ():
            if choice.get("index", 0) == 0:
                self._finish = choice.get("finish_reason") or self._finish
                self._say(choice.get("delta") or {})

    def _say(self, delta: Mapping[str, Any]) -> None:
        for name in self._message:
            if isinstance(delta.get(name), str):
                self._message[name] += delta[name]
        self.show(delta.get("content"))

    def whole(self) -> Any:
        """The body of the same reply, not streamed.

        Raises:
            ValueError: the stream ended before it said why.
        """
        if self._finish is None and "error" not in self._body:
            raise ValueError("the stream ended before the reply was complete")
        choice = {"message": self._message, "finish_reason": self._finish}
        return {**self._body, "choices": [choice]}


class ResponseEvents(Events):
    """Joins the events of a Responses stream; its last event carries the whole reply."""

    def __init__(self, on_text: OnText) -> None:
        super().__init__(on_text)
        self._body: Any = None

    def take(self, event: Mapping[str, Any], /) -> None:
        """Pass on a delta; keep the last event."""
        match event.get("type"):
            case "response.output_text.delta":
                self.show(event.get("delta"))
            case "response.completed" | "response.incomplete" | "response.failed":
                self._body = event.get("response")
            case "error":
                self._body = {"error": event.get("error") or event}

    def whole(self) -> Any:
        """The body of the same reply, not streamed.

        Raises:
            ValueError: the stream ended before its last event.
        """
        if self._body is None:
            raise ValueError("the stream ended before the reply was complete")
        return self._body


def events_of(api: str, on_text: OnText) -> Callable[[], ChatEvents | ResponseEvents]:
    """What makes a fresh joiner for each attempt."""
    return lambda: ChatEvents(on_text) if api == "chat" else ResponseEvents(on_text)
