"""Any LangChain chat model, or runnable around one, as the core's model client."""

import copy
import json
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, closing
from typing import Any, Literal
from uuid import uuid4

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import BaseOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import merge_configs

from harness_core.calls.keys import content_hash
from harness_core.calls.settle import NOTHING
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient, OnText
from harness_core.errors import BadSettingError
from harness_core.flows.streaming import ABANDONED
from harness_core.messages import Embeddings as Vectors
from harness_core.messages import Reply, Request, Texts
from harness_integrations.langchain.asking import model_name, own_settings
from harness_integrations.langchain.embeddings import EmbeddingsClient, GovernedEmbeddings
from harness_integrations.langchain.gates import Gate
from harness_integrations.langchain.messages import from_ours, whole
from harness_integrations.langchain.models import MARK, TAKEN_OVER, GovernedChatModel
from harness_integrations.langchain.replies import from_cache, read_message
from harness_integrations.langchain.sending import CODEC, cap_name, identity_of
from harness_integrations.langchain.structured import Method, structured
from harness_integrations.langchain.walking import INSIDE, models_in, rebound, rebuilt_with
from harness_integrations.shared.failures import cut_reply, failed_reply
from harness_integrations.shared.governing import AdaptedClient, need_asyncio
from harness_integrations.shared.retries import without_retries
from harness_integrations.shared.snapshots import plain
from harness_integrations.shared.streaming import StreamClosed

_TRANSPARENT = (RunnableSequence, RunnableWithFallbacks, BaseOutputParser)
_NOSTREAM = "nostream"
"""The tag by which LangGraph keeps a run's tokens out of ``stream_mode="messages"``."""


class LangChainClient(AdaptedClient):
    """Sends a reader's requests through ``model``: a chat model, or a runnable with one in it.

    The output cap of each request goes out under the model's own name for it. Structured output
    takes the best way the model offers. Requests are priced and recorded as the wrapped model,
    whatever a spec names, with one warning. A governed model is unwrapped, so that a request is
    governed once; ``trace`` is then its trace. Without ``embeddings`` readers rank by words.

    Raises:
        TypeError: ``model`` is no runnable.
    """

    api = "langchain"
    codec = CODEC

    def __init__(
        self,
        model: Runnable[Any, Any],
        *,
        embeddings: Embeddings | None = None,
        structured_method: Literal["auto"] | Method = "auto",
    ) -> None:
        super().__init__()
        if not isinstance(model, Runnable):
            raise TypeError(f"model is a chat model or a runnable, not {type(model).__name__}")
        self.governed = next(iter(governed_in(model)), None)
        self.replay = None if self.governed is None else self.governed.replay
        self.runnable: Runnable[Any, Any] = rebuilt_with(model, _bare)
        self.leaf = next(iter(models_in(self.runnable)), None)
        self.model = model_name(self.leaf if self.leaf is not None else self.runnable)
        self.takes_temperature = _takes_temperature(self.leaf)
        self.structured_method: Literal["auto"] | Method = structured_method
        self.config: RunnableConfig = {}
        self.gate = Gate(64)
        self._embeddings = _embeddings_client(embeddings)
        self.can_embed = self._embeddings is not None
        if self._embeddings is not None:
            self.embedding_model = self._embeddings.model
        if self.leaf is not None and self.leaf is self.runnable:
            self.identity = identity_of(self.leaf)
        else:
            self.identity = _shape(self.runnable)
        self.cache = None if self.governed is None else self.governed.response_cache

    @property
    def trace(self) -> Trace | None:
        """The trace of the governed model inside; None without one."""
        if self.governed is None:
            return None
        return self.governed.trace

    def within(self, config: RunnableConfig, gate: Gate) -> BaseClient:
        """The client of one run: its calls are children of ``config``'s run, and pass ``gate``.

        A replayed model answers a reader from its recording, as the core's own replay does.
        """
        if self.replay is not None:
            return self.replay
        twin = copy.copy(self)
        twin.config, twin.gate = config, gate
        return twin

    def takes_effort(self, effort: str) -> bool:
        """Whether the model lists the effort, or has a field for one."""
        profile = _profile(self.leaf)
        if (levels := profile.get("reasoning_effort_levels")) is not None:
            return effort in levels
        return (
            "reasoning_effort" in _fields(self.leaf)
            and profile.get("reasoning_output") is not False
        )

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """Invoke the model once; with ``on_text`` stream it."""
        runnable, given, config = self._prepared(request)
        with self.gate.one():
            try:
                if on_text is None:
                    return self._read(runnable.invoke(given, config))
                return self._streamed(runnable.stream(given, config), on_text)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is its request's
                return cut_reply(error) or failed_reply(error)

    async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """The async twin of ``send``, on asyncio."""
        need_asyncio("LangChainClient")
        runnable, given, config = self._prepared(request)
        async with self.gate.aone():
            try:
                if on_text is None:
                    return self._read(await runnable.ainvoke(given, config))
                return await self._astreamed(runnable.astream(given, config), on_text)
            except Exception as error:  # noqa: BLE001 - as above
                return cut_reply(error) or failed_reply(error)

    def _streamed(self, source: Any, on_text: OnText) -> Reply:
        total: Any = None
        with closing(source) as pieces:
            for piece in pieces:
                total = piece if total is None else total + piece
                try:
                    on_text(_text(piece))
                except StreamClosed:
                    return self._read(total, finish=ABANDONED)
        return self._read(total)

    async def _astreamed(self, source: Any, on_text: OnText) -> Reply:
        total: Any = None
        async with aclosing(source) as pieces:
            async for piece in pieces:
                total = piece if total is None else total + piece
                try:
                    on_text(_text(piece))
                except StreamClosed:
                    return self._read(total, finish=ABANDONED)
        return self._read(total)

    def stream(self, request: Request, /) -> Generator[Any, None, None]:
        """The model's own chunks."""
        runnable, given, config = self._prepared(request)
        source: Any = runnable.stream(given, config)
        with closing(source) as pieces:
            yield from pieces

    async def astream(self, request: Request, /) -> AsyncGenerator[Any, None]:
        """The async twin of ``stream``."""
        need_asyncio("LangChainClient")
        runnable, given, config = self._prepared(request)
        stream: Any = runnable.astream(given, config)
        async with aclosing(stream) as pieces:
            async for piece in pieces:
                yield piece

    def embed(self, request: Texts, /) -> Vectors:
        """Vectors from ``embeddings``; without them a failed outcome that says so."""
        return (
            super().embed(request) if self._embeddings is None else self._embeddings.embed(request)
        )

    async def aembed(self, request: Texts, /) -> Vectors:
        """The async twin of ``embed``."""
        if self._embeddings is None:
            return super().embed(request)
        return await self._embeddings.aembed(request)

    def __repr__(self) -> str:
        return f"LangChainClient({self.model!r})"

    # --- a request in LangChain's form ----------------------------------------------------------

    def _prepared(
        self, request: Request
    ) -> tuple[Runnable[Any, Any], list[BaseMessage], RunnableConfig]:
        if self.replay is not None:
            raise BadSettingError("a replayed model sends nothing; give the core a ReplayClient")

        def dressed(part: Any) -> Any:
            return _dressed(part, request, self.structured_method) if _is_model(part) else INSIDE

        runnable = rebuilt_with(self.runnable, dressed)
        return runnable, from_ours(request.messages), self._config(request)

    def _config(self, request: Request) -> RunnableConfig:
        tags = [] if request.final else [_NOSTREAM]
        own: RunnableConfig = {
            "run_name": request.label, "tags": tags, "metadata": {MARK: self._mark()},
        }  # fmt: skip
        return merge_configs(self.config, own)

    def _mark(self) -> str:
        return str((self.config.get("metadata") or {}).get(MARK, "a reader's"))

    def _read(self, output: Any, *, finish: str | None = None) -> Reply:
        """The reply in what a runnable gave: a message, structured output, text, anything."""
        parsed: Any = None
        if isinstance(output, Mapping) and "raw" in output:
            parsed, output = output.get("parsed"), output["raw"]
        if not isinstance(output, BaseMessage):
            message = AIMessage(content=_text(output))
        else:
            message = whole(output)
        reply = read_message(message)
        text = _dumped(parsed) if parsed is not None else reply.text
        raw = ChatResult(generations=[ChatGeneration(message=message)])
        hit = from_cache(message)
        facts: dict[str, Any] = {
            "usage": NOTHING if hit else reply.usage, "cached": hit,
            "finish_reason": finish or reply.finish_reason,
            "served_model": reply.served_model, "response_id": reply.response_id,
            "fingerprint": reply.fingerprint, "raw": raw,
        }  # fmt: skip
        if not text.strip() and finish is None:
            why = f"empty completion (finish reason: {reply.finish_reason or 'none'})"
            return Reply.failed(why, status=200, **facts)
        return Reply(ok=True, text=text.strip(), **facts)


def governed_in(whole_: Any) -> list[GovernedChatModel]:
    """The governed models of a runnable.

    Raises:
        BadSettingError: several, on different budgets.
    """
    found = [one for one in models_in(whole_) if isinstance(one, GovernedChatModel)]
    if len({(id(one.own_trace), id(one.governor)) for one in found}) > 1:
        raise BadSettingError("the runnable holds models under different budgets; use one trace")
    return found


def _bare(part: Any) -> Any:
    """Chat models as a client calls them: the one inside a governed model, tried once."""
    if isinstance(part, GovernedChatModel):
        part = part.bound.model_copy(update={name: getattr(part, name) for name in TAKEN_OVER})
    return without_retries(part, stream_usage=True) if isinstance(part, BaseChatModel) else INSIDE


def _embeddings_client(embeddings: Embeddings | None) -> EmbeddingsClient | None:
    if embeddings is None:
        return None
    if isinstance(embeddings, GovernedEmbeddings):
        return EmbeddingsClient(embeddings.bound, embeddings.model)
    return EmbeddingsClient(embeddings, model_name(embeddings))


def _is_model(part: Any) -> bool:
    return isinstance(part, BaseChatModel)


def _dressed(
    leaf: BaseChatModel, request: Request, method: Literal["auto"] | Method
) -> Runnable[Any, Any]:
    """A chat model with a request's schema and settings bound to it."""
    capped, settings = _capped(leaf, request), _settings(leaf, request)
    built: Runnable[Any, Any] = capped
    if request.schema is not None:
        built = structured(capped, request, method)
    return rebound(built, capped, capped.bind(**settings)) if settings else built


def _settings(leaf: BaseChatModel, request: Request) -> dict[str, Any]:
    settings = dict(request.extra_body)
    name = cap_name(leaf)
    if request.max_output is not None and name not in (None, "num_predict"):
        settings[str(name)] = request.max_output
    if request.temperature is not None:
        settings["temperature"] = request.temperature
    if request.effort is not None:
        settings["reasoning_effort"] = request.effort
    if request.stop:
        settings["stop"] = list(request.stop)
    return settings


def _shape(runnable: Runnable[Any, Any]) -> str:
    """What tells runnables apart in a cache: by content where it is known, else each for itself."""
    found: list[Any] = []

    def look(part: Any) -> Any:
        if isinstance(part, BaseChatModel):
            found.append(identity_of(part))
            return part
        if isinstance(part, Runnable):
            found.append(type(part).__name__)
            if isinstance(part, RunnableBindingBase):
                found.append(plain(part.kwargs))
            elif not isinstance(part, _TRANSPARENT):
                found.append(uuid4().hex)
        return INSIDE

    rebuilt_with(runnable, look)
    return f"runnable:{content_hash(found)[:16]}"


def _capped(leaf: BaseChatModel, request: Request) -> BaseChatModel:
    """Ollama's cap is a field: as a keyword it would displace the model's other options."""
    if request.max_output is None or cap_name(leaf) != "num_predict":
        return leaf
    return leaf.model_copy(update={"num_predict": request.max_output})


def _fields(leaf: Any) -> Mapping[str, Any]:
    return getattr(type(leaf), "model_fields", {})


def _profile(leaf: Any) -> Mapping[str, Any]:
    return getattr(leaf, "profile", None) or {}


def _takes_temperature(leaf: Any) -> bool:
    if _profile(leaf).get("temperature") is False:
        return False
    return leaf is not None and (
        "temperature" in _fields(leaf) or "temperature" in own_settings(leaf)
    )


def _text(output: Any) -> str:
    if isinstance(output, BaseMessage):
        return str(output.text)
    return output if isinstance(output, str) else _dumped(output)


def _dumped(value: Any) -> str:
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
