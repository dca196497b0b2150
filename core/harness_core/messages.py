"""What goes to a model and what comes back.

A ``Request`` is data: it names no client and no credential. A failed or refused request comes back
as a ``Reply`` with ``ok=False``; only errors that must stop a run are raised.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from harness_core.errors import BadQuestionError, RequestFailed, RequestRefused

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SENTINEL = "NOT_IN_DOCUMENT"
"""The reply of a model that did not find the answer in what it was shown."""

Role = Literal["system", "developer", "user", "assistant", "tool"]
Provenance = Literal["reported", "counted", "estimated", "bound"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message: a role and its text.

    ``more`` is what a framework's message carries beside its text (content blocks, tool calls, a
    name), as JSON without run ids or machine paths; it is part of every key.
    """

    role: str
    content: str
    more: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """The message as plain JSON data."""
        plain: dict[str, Any] = {"role": self.role, "content": self.content}
        return plain if self.more is None else {**plain, "more": self.more}


@dataclass(frozen=True, slots=True)
class Task:
    """What a request asks, as data: for a client that answers without a language model.

    It enters no key and no trace. ``kind`` is answer, extract, summarise, score, merge, revise,
    plan, step, screen or fields; ``excerpts`` are (chunk id or None, text) pairs in prompt order.
    """

    kind: str
    question: str
    excerpts: tuple[tuple[int | None, str], ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image to look at, of a media type like image/png: a request has it as its ``payload``."""

    data: bytes = field(repr=False)
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request for text. Token caps are in tokens; None means the model's own limit.

    ``final`` marks the request whose reply is the answer (it may be streamed); ``payload`` is a
    framework's own form of the request and, like ``task``, enters no key and no trace.
    ``aside_tokens`` counts what the messages carry beside text: images, sounds, files.
    """

    messages: tuple[Message, ...]
    model: str | None = None
    max_output: int | None = None
    temperature: float | None = None
    schema: Mapping[str, Any] | None = None
    schema_name: str = "result"
    effort: str | None = None
    label: str = "call"
    draw_index: int = 0
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[Mapping[str, Any], ...] = ()
    tool_choice: str | None = None
    stop: tuple[str, ...] = ()
    n: int = 1
    aside_tokens: int = 0
    final: bool = False
    task: Task | None = None
    payload: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """One request for vectors: at most a few dozen texts for one embedding model."""

    texts: tuple[str, ...]
    model: str | None = None
    label: str = "embed.request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts of one exchange, and who says so.

    ``reasoning`` is a part of ``output`` and ``cached_input`` a part of ``input``. ``provenance``:
    ``reported`` by the provider, ``counted`` here with the model's own tokenizer, ``estimated``
    with another one, or the ``bound`` that was held when nothing better is known.
    """

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cached_input: int | None = None
    provenance: Provenance = "reported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back for one ``Request``. ``text`` is always a string, ``""`` on failure.

    ``finish_reason`` is normalised (``length`` for every cut-off). ``cached`` means a cache or a
    recording answered; ``refused`` means a limit kept the request from being sent and ``reason``
    names it. ``step`` is its number in the trace. ``raw`` is the client's own reply object and
    ``cause`` the live exception behind a failure; neither is ever stored.
    """

    ok: bool
    text: str = ""
    error: str | None = None
    status: int | None = None
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    finish_reason: str | None = None
    retryable: bool = False
    cached: bool = False
    refused: bool = False
    reason: str | None = None
    label: str = ""
    served_model: str | None = None
    response_id: str | None = None
    fingerprint: str | None = None
    attempts: int = 1
    sent: bool = True
    step: str | None = None
    raw: Any = None
    cause: BaseException | None = None

    @property
    def cut(self) -> bool:
        """Whether the reply stopped at its output cap."""
        return self.ok and self.finish_reason == "length"

    @property
    def usable(self) -> bool:
        """Whether the reply holds text with something visible in it."""
        return self.ok and bool(self.text.strip())

    def unwrap(self) -> Self:
        """The reply itself when it is usable.

        Raises:
            RequestRefused: a limit refused the request.
            RequestFailed: it failed; chained to the provider's exception when there is one.
        """
        if self.refused:
            raise RequestRefused(self.error or "", self.reason or "", self.label, self.model)
        if not self.ok:
            raise RequestFailed(self.error or "the request failed", self.status) from self.cause
        return self

    @classmethod
    def failed(cls, error: str, **more: Any) -> Self:
        """A reply that says why there is none."""
        return cls(ok=False, error=error, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonReply:
    """A reply that was asked for as JSON: ``value`` is the object, None when it does not fit."""

    ok: bool
    value: dict[str, Any] | None
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Embeddings:
    """What came back for one ``Texts``: one row per text, or ``ok=False`` and why not."""

    ok: bool
    vectors: "NDArray[np.float64] | None" = None
    error: str | None = None
    status: int | None = None
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    retryable: bool = False
    cached: bool = False
    refused: bool = False
    reason: str | None = None
    label: str = ""
    attempts: int = 1
    sent: bool = True
    step: str | None = None
    cause: BaseException | None = None


Asked: TypeAlias = Request | Texts
Outcome: TypeAlias = Reply | Embeddings

_CUT_OFF = frozenset({
    "length", "max_tokens", "max_output_tokens", "incomplete", "context_window", "model_length",
    "model_context_window_exceeded",
})  # fmt: skip


def normalised_finish(reason: str | None) -> str | None:
    """``length`` for every spelling of a cut-off, everything else as it is."""
    return "length" if reason is not None and reason.lower() in _CUT_OFF else reason


_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


def clean_text(text: str) -> str:
    """``text`` as valid Unicode: a lone surrogate becomes U+FFFD."""
    return text if text.isascii() else re.sub("[\ud800-\udfff]", "\ufffd", text)


def as_messages(messages: Any) -> tuple[Message, ...]:
    """Messages from a string, one message, or several (``Message`` or role/content mappings).

    Raises:
        BadQuestionError: blank input, an unknown role, or content that is no text.
    """
    if isinstance(messages, str):
        messages = [Message("user", messages)]
    elif isinstance(messages, (Message, Mapping)):
        messages = [messages]
    read = tuple(_message(one) for one in messages)
    if not any(one.content.strip() or one.more for one in read):
        raise BadQuestionError("the messages hold no text; give at least one non-blank message")
    return read


def _message(given: Any) -> Message:
    if isinstance(given, str):
        given = Message("user", given)
    if isinstance(given, Mapping):
        given = Message(given.get("role", "user"), given.get("content", ""), given.get("more"))
    if not isinstance(given, Message):
        raise BadQuestionError(f"a message is text or role and content, not {type(given).__name__}")
    if given.role not in _ROLES:
        raise BadQuestionError(f"a role is one of {', '.join(sorted(_ROLES))}, not {given.role!r}")
    if not isinstance(given.content, str):
        raise BadQuestionError(f"content is text, not {type(given.content).__name__}")
    return replace(given, content=clean_text(given.content))


def parse_json(text: str, *, schema: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """The JSON object in a reply, or None. One surrounding code fence is tolerated, nothing else.

    With ``schema`` an empty object counts, and any other must use one of its property names.
    """
    value = _loaded(text)
    if not isinstance(value, dict):
        return None
    if schema is None:
        return value or None
    known = schema.get("properties") or {}
    return value if not value or not known or any(name in known for name in value) else None


def _loaded(text: str) -> Any:
    stripped = text.strip()
    fenced = re.fullmatch(r"```(?:json)?[ \t]*\n?(.*?)\n?[ \t]*```", stripped, re.DOTALL)
    for candidate in (stripped, fenced[1] if fenced else None):
        if candidate is not None:
            try:
                return _without_surrogates(json.loads(candidate))
            except (ValueError, RecursionError):
                continue
    return None


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_without_surrogates(one) for one in value]
    if isinstance(value, dict):
        return {clean_text(name): _without_surrogates(one) for name, one in value.items()}
    return value
