"""What no recording holds: credentials, this machine's folders, and what a test says it must not.

Prompts are changed too, and a replay finds a request by its changed prompt. So a change must give
the same for its own result: what was redacted in one turn comes back in the next.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from harness_core.messages import Message, Request
from harness_integrations.shared.snapshots import portable

Redact = Callable[[str], str]

SECRET = "<secret>"  # noqa: S105 - what stands in the place of one
_SHAPES = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|lsv2|ghp|glpat)[-_][A-Za-z0-9_\-]{16,}"
    r"|\bAIza[A-Za-z0-9_\-]{30,}"
    r"|\bAKIA[A-Z0-9]{16}\b"
    r"|\beyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{5,}"
)
_BEARER = re.compile(
    r"(?i)\b(bearer|api[-_]?key[\"']?\s*[:=]\s*[\"']?)(\s*)(?!<)[A-Za-z0-9_\-.~+/]{12,}=*"
)
_NAMES = ("_API_KEY", "_API_TOKEN", "_ACCESS_TOKEN", "_SECRET", "_SECRET_KEY")
_LEAST = 8  # characters of a credential; shorter values occur in ordinary text


class Scrubber:
    """Takes out of texts what a recording must not hold; ``redact`` is the test's own part."""

    def __init__(self, redact: Redact | None = None) -> None:
        self._redact = redact
        values = {v for k, v in os.environ.items() if k.endswith(_NAMES) and len(v) >= _LEAST}
        self._values = sorted(values, key=lambda value: (-len(value), value))

    def text(self, text: str) -> str:
        """One text without them."""
        for value in self._values:
            text = text.replace(value, SECRET)
        text = _BEARER.sub(rf"\1\2{SECRET}", _SHAPES.sub(SECRET, text))
        text = portable(text)
        return text if self._redact is None else self._redact(text)

    def data(self, value: Any) -> Any:
        """JSON data, each text of it without them; names stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {name: self.data(one) for name, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.data(one) for one in value]
        return value

    def messages(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Messages without them; the same objects where nothing changes."""
        changed = tuple(
            Message(one.role, self.text(one.content), self.data(one.more)) for one in messages
        )
        return messages if changed == messages else changed

    def request(self, request: Request) -> Request:
        """A request as its recording would hold it."""
        messages = self.messages(request.messages)
        return request if messages is request.messages else replace(request, messages=messages)
