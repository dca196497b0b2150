"""LLMs under limits: what is refused is not sent, what is sent is capped, priced and recorded."""

import asyncio
import copy
import gc
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import MockEmbedding, Settings
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.base.llms.types import (
    ChatMessage,
    ImageBlock,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler, TokenCountingHandler
from llama_index.core.llms import MockLLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.tools import FunctionTool
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler
from pydantic import BaseModel

from harness_core import Governor, RequestRefused, ResponseCache, Trace, governed_run
from harness_core.errors import BadSettingError
from harness_integrations.llama_index import (
    GovernedEmbedding,
    GovernedLLM,
    GovernorRefusalEvent,
    OutputCapUnenforceable,
    govern_llm,
)
from harness_integrations.llama_index.testing import ReplayLLM
from tests.support.llama import KINDS, Script, Uncapped, nodes, openai, user
from tests.support.openai_server import OpenAIServer


class Ship(BaseModel):
    """A ship."""

    name: str


def look_up(name: str) -> str:
    """Look a ship up."""
    return name


TOOL = FunctionTool.from_defaults(fn=look_up)
PROMPT = PromptTemplate("Name a ship of {year}.")


async def _drained(stream: Any) -> list[Any]:
    return [piece async for piece in await stream]


SYNC: dict[str, Callable[[Any], Any]] = {
    "chat": lambda llm: llm.chat(user()),
    "complete": lambda llm: llm.complete("hello"),
    "stream_chat": lambda llm: list(llm.stream_chat(user())),
    "stream_complete": lambda llm: list(llm.stream_complete("hello")),
    "chat_with_tools": lambda llm: llm.chat_with_tools([TOOL], user_msg="who?"),
    "predict_and_call": lambda llm: llm.predict_and_call([TOOL], user_msg="who?"),
    "structured_predict": lambda llm: llm.structured_predict(Ship, PROMPT, year=1961),
    "stream_structured_predict": lambda llm: list(
        llm.stream_structured_predict(Ship, PROMPT, year=1961)
    ),
    "as_structured_llm": lambda llm: llm.as_structured_llm(Ship).complete("name a ship"),
    "as_structured_llm.chat": lambda llm: llm.as_structured_llm(Ship).chat(user()),
    "predict": lambda llm: llm.predict(PROMPT, year=1961),
    "stream": lambda llm: list(llm.stream(PROMPT, year=1961)),
}
ASYNC: dict[str, Callable[[Any], Any]] = {
    "achat": lambda llm: llm.achat(user()),
    "acomplete": lambda llm: llm.acomplete("hello"),
    "astream_chat": lambda llm: _drained(llm.astream_chat(user())),
    "astream_complete": lambda llm: _drained(llm.astream_complete("hello")),
    "achat_with_tools": lambda llm: llm.achat_with_tools([TOOL], user_msg="who?"),
    "astructured_predict": lambda llm: llm.astructured_predict(Ship, PROMPT, year=1961),
    "apredict": lambda llm: llm.apredict(PROMPT, year=1961),
    "as_structured_llm.acomplete": lambda llm: llm.as_structured_llm(Ship).acomplete("a ship"),
}


def _refusing(server: OpenAIServer, kind: str, **limits: Any) -> GovernedLLM:
    return GovernedLLM(openai(server, kind), trace=Trace(Governor(**(limits or {"max_calls": 0}))))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", SYNC)
def test_what_is_refused_is_not_sent(server: OpenAIServer, kind: str, way: str) -> None:  # 20
    llm = _refusing(server, kind)
    with pytest.raises(RequestRefused) as refused:
        SYNC[way](llm)
    assert refused.value.reason == "calls"
    assert server.requests == []
    assert llm.trace.ledger.held == 0
    assert len(llm.trace.refusals) == len(llm.trace.raised) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ASYNC)
async def test_what_is_refused_is_not_sent_async(
    server: OpenAIServer, kind: str, way: str
) -> None:  # 20
    llm = _refusing(server, kind)
    with pytest.raises(RequestRefused):
        await ASYNC[way](llm)
    assert server.requests == []
    assert llm.trace.ledger.held == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limits", [
    {"max_cost_usd": 1e-9}, {"max_tokens_total": 5}, {"max_output_tokens": 3},
    {"allowed_models": ["gpt-4o"]},
])  # fmt: skip
def test_every_limit_refuses_before_sending(
    server: OpenAIServer, kind: str, limits: dict[str, Any]
) -> None:
    llm = _refusing(server, kind, **limits)
    for ask in (SYNC["chat"], SYNC["stream_chat"]):
        with pytest.raises(RequestRefused):
            ask(llm)
    assert server.requests == []


@pytest.mark.parametrize("way", ["structured_predict", "as_structured_llm"])
def test_structured_output_of_a_provider_class_is_governed_and_capped(
    server: OpenAIServer, way: str
) -> None:
    server.queue_tool_calls(("Ship", {"name": "Dunlin"}))
    llm = GovernedLLM(openai(server, "responses", max_tokens=70), governor=Governor(max_calls=1))
    SYNC[way](llm)
    assert [body["max_output_tokens"] for body in server.bodies] == [70]
    assert llm.trace.calls == 1


@pytest.mark.parametrize("mode", ["compact", "refine", "tree_summarize", "accumulate"])
def test_no_synthesizer_swallows_a_refusal(server: OpenAIServer, mode: str) -> None:  # 21
    llm = _refusing(server, "openai")
    synthesizer = get_response_synthesizer(llm=llm, response_mode=ResponseMode(mode))
    with pytest.raises(RequestRefused):
        synthesizer.synthesize("how many?", nodes())
    assert not isinstance(llm.trace.raised[0], (ValueError, TypeError))
    assert server.requests == []


def test_a_refusal_after_the_first_request_ends_refine(server: OpenAIServer) -> None:  # 21
    llm = _refusing(server, "openai", max_calls=1)
    synthesizer = get_response_synthesizer(llm=llm, response_mode=ResponseMode("refine"))
    with pytest.raises(RequestRefused):
        synthesizer.synthesize("how many?", nodes())
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("kind", "field"), [("openai", "max_tokens"), ("responses", "max_output_tokens")]
)
def test_a_calls_cap_holds_against_the_constructors(
    server: OpenAIServer, kind: str, field: str
) -> None:  # 23
    bare = openai(server, kind, max_tokens=500)
    llm = GovernedLLM(bare, governor=Governor())
    cap = "max_tokens" if kind == "openai" else "max_output_tokens"
    llm.chat(user(), **{cap: 7})
    assert server.bodies[0][field] == 7
    assert bare.metadata.num_output == 500
    assert llm.trace.requests[0].params_sent["max_output"] == 7


def test_additional_kwargs_cannot_lift_a_cap(server: OpenAIServer) -> None:  # 23
    bare = openai(server, max_tokens=500, additional_kwargs={"max_tokens": 900})
    llm = GovernedLLM(bare, governor=Governor())
    llm.chat(user(), max_tokens=7)
    assert server.bodies[0]["max_tokens"] == 7
    assert bare.additional_kwargs == {"max_tokens": 900}
    with pytest.raises(RequestRefused, match="output cap"):
        GovernedLLM(bare, governor=Governor(max_output_tokens=800)).chat(user())


def test_a_reasoning_models_cap_goes_out_under_its_own_name(server: OpenAIServer) -> None:  # 23
    llm = GovernedLLM(openai(server, model="gpt-5-mini"), governor=Governor())
    llm.chat(user(), max_tokens=3000)
    assert server.bodies[0]["max_completion_tokens"] == 3000
    assert "max_tokens" not in server.bodies[0]


def test_an_llm_without_a_cap_is_refused_unless_allowed() -> None:  # 23
    with pytest.raises(OutputCapUnenforceable, match="Script") as refused:
        GovernedLLM(Uncapped(), governor=Governor())
    assert isinstance(refused.value, RuntimeError)
    llm = GovernedLLM(Uncapped(prompts=[]), governor=Governor(), allow_uncapped=True)
    assert llm.complete("hello").text


def test_the_allow_list_sees_every_way_to_name_a_model(server: OpenAIServer) -> None:  # 24
    allowed = Governor(allowed_models=["gpt-4o-mini"])
    llm = GovernedLLM(openai(server), trace=Trace(allowed))
    hidden = GovernedLLM(
        openai(server, additional_kwargs={"model": "gpt-4o"}), trace=Trace(allowed)
    )
    for asked, more in ((llm, {"model": "gpt-4o"}), (hidden, {})):
        with pytest.raises(RequestRefused) as refused:
            asked.chat(user(), **more)
        assert (refused.value.reason, refused.value.model) == ("model", "gpt-4o")
    assert server.requests == []


def test_the_served_model_is_recorded_beside_the_one_asked_for(server: OpenAIServer) -> None:  # 24
    llm = GovernedLLM(openai(server), governor=Governor())
    llm.chat(user(), model="gpt-4o")
    step = llm.trace.requests[0]
    assert (step.model, step.served_model, server.bodies[0]["model"]) == ("gpt-4o",) * 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_failing_provider_is_asked_once(server: OpenAIServer, kind: str) -> None:  # 25
    server.queue(times=20, status=500)
    bare = openai(server, kind, max_retries=2)
    llm = GovernedLLM(bare, governor=Governor())
    for ask in (SYNC["chat"], SYNC["stream_chat"]):
        with pytest.raises(Exception, match="500"):
            ask(llm)
    assert len(server.requests) == 2
    assert llm.trace.spent_usd == 0
    assert bare.max_retries == 2


def test_exactly_the_limit_passes_from_many_threads(server: OpenAIServer) -> None:  # 26
    llm = _refusing(server, "openai", max_calls=5)
    refused: list[RequestRefused] = []

    def ask() -> None:
        for _ in range(3):
            try:
                llm.chat(user())
            except RequestRefused as refusal:
                refused.append(refusal)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(server.requests), len(refused)) == (5, 19)


@pytest.mark.anyio
async def test_exactly_the_limit_passes_from_many_tasks() -> None:  # 26
    llm = GovernedLLM(MockLLM(max_tokens=3), governor=Governor(max_calls=40))
    outcomes: list[bool] = []

    async def ask() -> None:
        try:
            await llm.achat(user())
            outcomes.append(True)
        except RequestRefused:
            outcomes.append(False)

    async with asyncio.TaskGroup() as group:
        for _ in range(100):
            group.create_task(ask())
    assert (outcomes.count(True), outcomes.count(False)) == (40, 60)


def test_replacing_callback_managers_and_settings_keeps_the_governor(
    server: OpenAIServer,
) -> None:  # 27
    debug = LlamaDebugHandler(print_trace_on_end=False)
    Settings.callback_manager = CallbackManager([debug])
    llm = _refusing(server, "openai", max_calls=1)
    Settings.llm = llm
    synthesizer = get_response_synthesizer(llm=llm, response_mode=ResponseMode("compact"))
    synthesizer.callback_manager = Settings.callback_manager
    assert str(synthesizer.synthesize("hello?", nodes()))
    assert len(debug.get_llm_inputs_outputs()) == 1  # the user's handler heard the one call
    with pytest.raises(RequestRefused):
        Settings.llm.complete("more")
    assert len(server.requests) == 1


def test_governing_twice_counts_once(server: OpenAIServer) -> None:  # 28
    governor = Governor()
    llm = govern_llm(govern_llm(openai(server), governor=governor), governor=governor)
    llm.chat(user())
    assert llm.trace.calls == len(server.requests) == 1
    with pytest.raises(BadSettingError):
        govern_llm(llm, trace=Trace())
    with pytest.raises(BadSettingError):
        GovernedLLM(llm, governor=governor)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, GovernedLLM.model_copy])
def test_a_copy_stays_governed(server: OpenAIServer, copied: Callable[[Any], Any]) -> None:  # 28
    llm = copied(_refusing(server, "openai"))
    with pytest.raises(RequestRefused):
        llm.chat(user())
    assert server.requests == []


def test_a_pickle_which_would_lose_the_budget_is_refused(mock: MockLLM) -> None:  # 28
    for governed in (
        GovernedLLM(mock, governor=Governor()),
        GovernedEmbedding(MockEmbedding(embed_dim=4), governor=Governor()),
    ):
        with pytest.raises(TypeError, match="budget of this process"):
            pickle.dumps(governed)


class _Heard(BaseEventHandler):
    events: list[Any] = []  # noqa: RUF012 - a field, copied for each

    @classmethod
    def class_name(cls) -> str:
        return "Heard"

    def handle(self, event: Any, **kwargs: Any) -> None:
        self.events.append(event)


@pytest.mark.parametrize("way", ["chat", "complete", "stream_chat", "stream_complete", "predict"])
def test_one_pair_of_events_per_governed_call(server: OpenAIServer, way: str) -> None:  # 29
    heard = _Heard(events=[])
    get_dispatcher().add_event_handler(heard)
    tokens = TokenCountingHandler(tokenizer=str.split)
    bare = openai(server)
    bare.callback_manager = CallbackManager([tokens])
    llm = GovernedLLM(bare, governor=Governor())
    SYNC[way](llm)
    names = [type(event).__name__ for event in heard.events]
    pairs = [name for name in names if name.startswith(("LLMChat", "LLMCompletion"))]
    assert sum(name.endswith("StartEvent") for name in pairs) == 1
    assert sum(name.endswith("EndEvent") for name in pairs) == 1
    assert len(tokens.llm_token_counts) == 1
    usage = llm.trace.requests[0].tokens
    assert usage.provenance == "reported"
    assert tokens.total_llm_token_count == (usage.input or 0) + (usage.output or 0)


def test_a_refusal_is_an_event_of_ours_and_no_call(server: OpenAIServer) -> None:
    heard = _Heard(events=[])
    get_dispatcher().add_event_handler(heard)
    llm = _refusing(server, "openai")
    with pytest.raises(RequestRefused):
        llm.chat(user())
    told = [event for event in heard.events if isinstance(event, GovernorRefusalEvent)]
    assert [(event.reason, event.model, event.run_id) for event in told] == [
        ("calls", "gpt-4o-mini", llm.trace.run_id)
    ]
    assert not any(type(event).__name__ == "LLMChatStartEvent" for event in heard.events)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_that_is_shown_holds_a_key(server: OpenAIServer, kind: str) -> None:  # 30
    llm = GovernedLLM(openai(server, kind), governor=Governor())
    llm.chat(user())
    shown = [
        llm.to_dict(),
        llm.to_payload(),
        repr(llm),
        str(llm),
        llm.trace.export(),
        llm.to_json(),
    ]
    assert "sk-secret" not in str(shown)


def test_a_stream_that_nobody_begins_holds_nothing(server: OpenAIServer) -> None:  # 18
    llm = _refusing(server, "openai", max_calls=1)
    llm.stream_chat(user())
    gc.collect()
    assert llm.trace.ledger.held == 0
    assert llm.chat(user()).message.content
    with pytest.raises(RequestRefused):
        llm.stream_chat(user())  # at the call, not at the first piece


def test_a_stream_closed_early_settles_at_what_arrived(server: OpenAIServer) -> None:  # 17
    llm = GovernedLLM(openai(server), governor=Governor())
    stream = llm.stream_chat(user("one two three four five six seven"))
    next(stream)
    next(stream)
    stream.close()
    step = llm.trace.requests[0]
    assert (step.cancelled, step.tokens.provenance) == (True, "estimated")
    assert llm.trace.ledger.held == 0
    assert (step.tokens.output or 0) < 10


@pytest.mark.anyio
async def test_cancelling_a_task_settles_its_stream(server: OpenAIServer) -> None:  # 18
    llm = GovernedLLM(openai(server), governor=Governor())
    begun = asyncio.Event()

    async def read() -> None:
        async for _ in await llm.astream_chat(user("one two three")):
            begun.set()
            await asyncio.sleep(30)

    task = asyncio.create_task(read())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gc.collect()
    await asyncio.sleep(0)
    assert llm.trace.ledger.held == 0
    assert llm.trace.requests[0].cancelled


def test_an_empty_stream_gives_one_empty_piece() -> None:  # 19
    llm = GovernedLLM(Script(reply=lambda prompt: "", prompts=[]), governor=Governor())
    assert [piece.delta for piece in llm.stream_complete("hello")] == [""]


def test_a_stream_reports_its_usage_without_being_asked(server: OpenAIServer) -> None:
    llm = GovernedLLM(openai(server), governor=Governor())
    list(llm.stream_chat(user()))
    step = llm.trace.requests[0]
    assert (step.tokens.provenance, step.finish_reason) == ("reported", "stop")


def test_a_cache_answers_a_repeat_and_a_stream(server: OpenAIServer, tmp_path: Any) -> None:
    cache = ResponseCache(tmp_path / "cache.sqlite3")
    llm = GovernedLLM(openai(server), governor=Governor(), response_cache=cache)
    first = llm.chat(user())
    again = llm.chat(user())
    streamed = list(llm.stream_chat(user()))
    cache.close()
    assert len(server.requests) == 1
    assert first.message.content == again.message.content == streamed[-1].message.content
    assert [step.cached for step in llm.trace.requests] == [False, True, True]


def test_without_limits_a_governed_llm_says_what_is_missing(mock: MockLLM) -> None:
    with pytest.raises(TypeError, match="governed_run"):
        GovernedLLM(mock).complete("hello")
    with governed_run(governor=Governor(max_calls=1)) as trace:
        GovernedLLM(mock).complete("hello")
    assert trace.calls == 1


def test_wrappers_that_share_a_governor_share_its_budget(mock: MockLLM) -> None:
    governor = Governor(max_calls=1)
    first, second = GovernedLLM(mock, governor=governor), GovernedLLM(mock, governor=governor)
    first.complete("hello")
    with pytest.raises(RequestRefused):
        second.complete("hello")


def test_on_refusal_raise_raises_once_and_is_told_once(mock: MockLLM) -> None:
    trace = Trace(Governor(max_calls=0, on_refusal="raise"))
    with pytest.raises(RequestRefused):
        GovernedLLM(mock, trace=trace).complete("hello")
    assert len(trace.raised) == 1


def test_a_governed_llm_is_an_llm_that_calls_tools(llm: Any) -> None:  # 1
    governed = GovernedLLM(llm, governor=Governor())
    assert BaseLLM.__name__ in [kind.__name__ for kind in type(governed).__mro__]
    assert governed.metadata == llm.metadata
    assert governed.model == "gpt-4o-mini"


@pytest.mark.parametrize("kind", KINDS)
def test_one_llm_serves_one_event_loop_after_another(server: OpenAIServer, kind: str) -> None:
    bare = openai(server, kind, async_http_client=None)
    llm = GovernedLLM(bare, governor=Governor())

    async def ask() -> str | None:
        said = await llm.achat(user())
        here = llm._client._loops.here(llm._client.llm)
        await here._aclient.close()  # its connection would outlive this loop
        return said.message.content

    assert [asyncio.run(ask()) for _ in range(3)] == ["echo: hello there"] * 3
    assert [step.ok for step in llm.trace.requests] == [True] * 3


ODD = "a\ud800b\x00c"
READ = "a\ufffdb\x00c"


def test_text_that_is_no_unicode_is_recorded_cached_and_replayed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    trace, cache = Trace(Governor(max_cost_usd=None), path=path), ResponseCache(tmp_path / "cache")
    llm = GovernedLLM(Script(reply=lambda _: ODD), trace=trace, response_cache=cache)
    call = ToolCallBlock(tool_call_id=ODD, tool_name=ODD, tool_kwargs={ODD: ODD})
    talk = [
        ChatMessage(
            role="user", blocks=[TextBlock(text=ODD), ImageBlock(url="https://a.org/\x00")]
        ),
        ChatMessage(role="assistant", blocks=[TextBlock(text=ODD), call]),
        ChatMessage(role="tool", content=ODD, additional_kwargs={"tool_call_id": ODD, "name": ODD}),
    ]
    assert llm.chat(talk, stop=[ODD]).message.content == ODD
    assert list(llm.stream_chat(talk, stop=[ODD]))[-1].message.content == READ
    assert llm.complete(ODD).text == ODD
    assert [s.cached for s in trace.steps if s.kind == "chat"] == [False, True, False]
    assert ReplayLLM(path).chat(talk, stop=[ODD]).message.content == READ
    embedding = GovernedEmbedding(MockEmbedding(embed_dim=2), trace=trace)
    assert embedding.get_text_embedding(ODD) == [0.5, 0.5]
