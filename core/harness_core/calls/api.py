"""``call`` and its kin: one request of a user's own, on the same path as every reader's."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from harness_core.calls.ambient import trace_for
from harness_core.calls.exchange import exchange, governed
from harness_core.calls.progress import OnProgress
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.client import Client, OnText
from harness_core.config import setting
from harness_core.errors import BadSettingError
from harness_core.flows import sync, tasks
from harness_core.flows.ask import reply_of
from harness_core.flows.streaming import HeldBack
from harness_core.flows.types import Drive, Flow, T
from harness_core.messages import (
    Embeddings,
    JsonReply,
    Outcome,
    Reply,
    Request,
    as_messages,
    parse_json,
)
from harness_core.ranking.embedders import Vectors, embed_texts


def run_flow(
    flow: Flow[T],
    client: Client,
    trace: Trace,
    *,
    width: int | None = None,
    on_progress: OnProgress | None = None,
    on_text: OnText | None = None,
) -> T:
    """Run a flow here, its requests on the call path, at most ``width`` of them at once."""
    drive = governed(flow, Run(client, trace, on_progress))
    heard = None if on_text is None else HeldBack(on_text)
    result = sync.run(drive, width=_width(width), on_text=heard)
    if heard is not None:
        heard.end()
    return result


async def arun_flow(
    flow: Flow[T],
    client: Client,
    trace: Trace,
    *,
    width: int | None = None,
    on_progress: OnProgress | None = None,
    on_text: OnText | None = None,
) -> T:
    """``run_flow`` on asyncio or trio."""
    drive = governed(flow, Run(client, trace, on_progress))
    heard = None if on_text is None else HeldBack(on_text)
    result = await tasks.arun(drive, width=_width(width), on_text=heard)
    if heard is not None:
        heard.end()
    return result


def _width(width: int | None) -> int:
    return int(setting("max_concurrency")) if width is None else width


def call(
    client: Client,
    messages: Any,
    *,
    model: str | None = None,
    max_output: int | None = None,
    temperature: float | None = None,
    schema: Mapping[str, Any] | None = None,
    schema_name: str = "result",
    effort: str | None = None,
    label: str = "call",
    draw_index: int = 0,
    trace: Trace | None = None,
    extra_body: Mapping[str, Any] | None = None,
    on_text: OnText | None = None,
) -> Reply:
    """Send one request under the limits of ``trace``, recorded in it.

    ``messages`` is text, one message, or several. ``max_output`` is in tokens (none: the model's
    limit, which makes the bound large). ``draw_index`` above 0 keeps draws of one request apart in
    a cache or recording. A failed or refused request comes back with ``ok=False``.

    Raises:
        AuthError, ReplayMissError, ReplayExhaustedError: see there.
        BadQuestionError: messages without text.
    """
    request = _request(messages, locals())
    return reply_of(sync.run(_exchange(client, request, trace), on_text=on_text))


async def acall(
    client: Client,
    messages: Any,
    *,
    model: str | None = None,
    max_output: int | None = None,
    temperature: float | None = None,
    schema: Mapping[str, Any] | None = None,
    schema_name: str = "result",
    effort: str | None = None,
    label: str = "call",
    draw_index: int = 0,
    trace: Trace | None = None,
    extra_body: Mapping[str, Any] | None = None,
    on_text: OnText | None = None,
) -> Reply:
    """The async twin of ``call``."""
    request = _request(messages, locals())
    return reply_of(await tasks.arun(_exchange(client, request, trace), on_text=on_text))


def call_json(
    client: Client, messages: Any, schema: Mapping[str, Any], **settings: Any
) -> JsonReply:
    """``call`` with a JSON schema: ``value`` is the object, None when the reply holds none.

    Takes the keywords of ``call``. The reply may be ``ok`` while its JSON is not.
    """
    return _json(call(client, messages, schema=schema, **settings))


async def acall_json(
    client: Client, messages: Any, schema: Mapping[str, Any], **settings: Any
) -> JsonReply:
    """The async twin of ``call_json``."""
    return _json(await acall(client, messages, schema=schema, **settings))


def embed(
    client: Client,
    texts: Sequence[str],
    *,
    trace: Trace | None = None,
    model: str | None = None,
    fallback: Literal["lexical", "error"] = "lexical",
) -> Embeddings:
    """Vectors of texts, one L2-normalised row each; recorded and held to limits like any request.

    Raises:
        EmbedError: embedding failed and ``fallback="error"``.
        AuthError: no credential to send with.
    """
    run = trace_for(trace) or Trace()
    flow = _embedding(texts, client, run, model, fallback)
    return _vectors(run_flow(flow, client, run))


async def aembed(
    client: Client,
    texts: Sequence[str],
    *,
    trace: Trace | None = None,
    model: str | None = None,
    fallback: Literal["lexical", "error"] = "lexical",
) -> Embeddings:
    """The async twin of ``embed``."""
    run = trace_for(trace) or Trace()
    flow = _embedding(texts, client, run, model, fallback)
    return _vectors(await arun_flow(flow, client, run))


def _request(messages: Any, given: Mapping[str, Any]) -> Request:
    names = (
        "model", "max_output", "temperature", "schema", "schema_name", "effort", "label",
        "draw_index",
    )  # fmt: skip
    return Request(
        messages=as_messages(messages),
        extra_body=given["extra_body"] or {},
        final=given["on_text"] is not None,
        **{name: given[name] for name in names},
    )


def _exchange(client: Client, request: Request, trace: Trace | None) -> Drive[Outcome]:
    if not isinstance(client, Client):
        raise BadSettingError(f"client is a client, not {type(client).__name__}")
    return exchange(request, Run(client, trace_for(trace) or Trace()))


def _json(reply: Reply) -> JsonReply:
    value = parse_json(reply.text) if reply.ok else None
    return JsonReply(ok=value is not None, value=value, reply=reply)


def _embedding(
    texts: Sequence[str],
    client: Client,
    run: Trace,
    model: str | None,
    fallback: Literal["lexical", "error"],
) -> Flow[Vectors]:
    def note(label: str, detail: Mapping[str, Any]) -> None:
        run.note(label, **detail)

    return embed_texts(texts, client, model=model, fallback=fallback, record=note)


def _vectors(found: Vectors) -> Embeddings:
    return Embeddings(
        ok=True, vectors=found.matrix, model=found.source, error=found.reason, label="embed"
    )
