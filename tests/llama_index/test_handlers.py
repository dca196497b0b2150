"""Traces of apps that are only watched: instrumentation, callbacks, and the gate."""

import asyncio
import gc
import threading
from typing import Any

import pytest
from llama_index.core import MockEmbedding, Settings, SummaryIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.llms import MockLLM
from llama_index.core.prompts import PromptTemplate
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler
from pydantic import BaseModel

from harness_core import Governor, RequestRefused, Trace
from harness_core.errors import BadSettingError
from harness_integrations.llama_index import (
    GovernedLLM,
    TraceCallbackHandler,
    TraceEventHandler,
    TraceSpanHandler,
    install_gate,
    instrument,
)
from tests.support.llama import KINDS, nodes, openai, user
from tests.support.openai_server import OpenAIServer


class _Form(BaseModel):
    """A form."""

    name: str


def test_they_are_what_llama_index_takes() -> None:  # 1
    assert issubclass(TraceEventHandler, BaseEventHandler)
    assert issubclass(TraceCallbackHandler, BaseCallbackHandler)


def test_every_request_is_one_step(server: OpenAIServer) -> None:
    llm, trace = openai(server), Trace()
    with instrument(trace):
        llm.chat(user())
        llm.complete("hello")
    steps = trace.requests
    assert [step.label for step in steps] == ["chat", "complete"]
    assert [step.tokens.provenance for step in steps] == ["reported", "reported"]
    assert steps[0].prompt[0].content == "hello there"
    assert (trace.calls, len(server.requests)) == (2, 2)
    assert trace.spent_usd > 0


@pytest.mark.anyio
async def test_nested_calls_and_both_systems_are_one_step_each(server: OpenAIServer) -> None:  # 31
    trace = Trace()
    manager = CallbackManager([TraceCallbackHandler(trace)])
    mock, llm = MockLLM(max_tokens=3, callback_manager=manager), openai(server)
    llm.callback_manager = manager
    with instrument(trace):
        await mock.achat(user())
        mock.chat(user())
        llm.chat(user())
        server.queue(text='{"name": "x"}')
        llm.as_structured_llm(_Form).complete("a form")
        MockEmbedding(embed_dim=4, callback_manager=manager).get_text_embedding_batch(["a", "b"])
    assert [step.model for step in trace.requests] == [
        "MockLLM", "MockLLM", "gpt-4o-mini", "gpt-4o-mini", "MockEmbedding",
    ]  # fmt: skip


def test_the_legacy_system_alone_is_one_step_each(server: OpenAIServer) -> None:  # 31
    trace = Trace()
    llm = openai(server)
    llm.callback_manager = CallbackManager([TraceCallbackHandler(trace)])
    llm.chat(user())
    list(llm.stream_chat(user()))
    stream = llm.stream_chat(user())
    next(stream)
    stream.close()
    server.queue(status=400)
    with pytest.raises(Exception, match="400"):
        llm.chat(user())
    assert [step.ok for step in trace.requests] == [True, True, False, False]
    assert [step.cancelled for step in trace.requests] == [False, False, True, False]


def test_a_faulty_handler_never_breaks_the_app(server: OpenAIServer) -> None:  # 31
    trace = Trace()

    def broken(text: str) -> str:
        raise ValueError("no")

    with instrument(trace, redact=broken):
        assert openai(server).chat(user()).message.content
    faults = [step for step in trace.steps if step.label == "handler.error"]
    assert "ValueError: no" in str(faults[0].detail)


def test_threads_do_not_disturb_each_other() -> None:  # 31
    trace = Trace()
    llm = MockLLM(max_tokens=3)

    def ask() -> None:
        for _ in range(10):
            llm.chat(user())

    with instrument(trace):
        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(trace.requests) == trace.calls == 60


def test_streams_end_whole_closed_failed_or_open(server: OpenAIServer) -> None:  # 32
    llm, trace = openai(server, max_retries=0), Trace()
    with instrument(trace):
        handler = next(
            h for h in get_dispatcher().event_handlers if isinstance(h, TraceEventHandler)
        )
        list(llm.stream_chat(user()))
        stream = llm.stream_chat(user())
        next(stream)
        stream.close()
        server.queue(status=500)
        with pytest.raises(Exception, match="500"):
            list(llm.stream_chat(user()))
        left = llm.stream_chat(user())
        assert handler.unfinished == ["gpt-4o-mini"]
    assert handler.unfinished == []
    whole, closed, failed, still = trace.requests
    assert (whole.ok, whole.cancelled) == (True, False)
    assert (closed.ok, closed.cancelled, closed.error) == (False, True, "closed before its end")
    assert (failed.ok, failed.cancelled, failed.status) == (False, False, 500)
    assert still.error is not None
    assert still.error.startswith("open")
    del left
    gc.collect()


def test_a_failed_call_has_its_status_and_costs_nothing(server: OpenAIServer) -> None:  # 32
    trace = Trace()
    server.queue(status=503)
    with instrument(trace), pytest.raises(Exception, match="503"):
        openai(server, max_retries=0).chat(user())
    [step] = trace.requests
    assert (step.ok, step.status, trace.spent_usd) == (False, 503, 0)


def test_stream_usage_comes_from_its_piece_and_the_finish_from_the_one_before(
    server: OpenAIServer,
) -> None:  # 33
    trace, llm = Trace(), openai(server)
    with instrument(trace):
        list(llm.stream_chat(user(), stream_options={"include_usage": True}))
        list(llm.stream_chat(user()))
    told, untold = trace.requests
    assert (told.tokens.provenance, told.finish_reason) == ("reported", "stop")
    assert (untold.tokens.provenance, untold.finish_reason) == ("estimated", "stop")


def test_handlers_are_removed_exactly(server: OpenAIServer) -> None:  # 34
    root = get_dispatcher()
    theirs = TraceEventHandler(Trace())
    root.add_event_handler(theirs)
    before, spans = list(root.event_handlers), list(root.span_handlers)
    trace = Trace()
    with pytest.raises(KeyError), instrument(trace):  # noqa: PT012 - the block is what is tested
        with instrument(trace):
            assert len(root.event_handlers) == len(before) + 1
            openai(server).chat(user())
        assert len(root.event_handlers) == len(before) + 1
        with instrument(Trace()):
            assert len(root.event_handlers) == len(before) + 2
        raise KeyError
    assert all(a is b for a, b in zip(root.event_handlers, before, strict=True))
    assert all(a is b for a, b in zip(root.span_handlers, spans, strict=True))
    assert len(trace.requests) == 1


def test_the_legacy_handler_can_be_installed_with_it(server: OpenAIServer) -> None:  # 34
    trace = Trace()
    Settings.callback_manager = CallbackManager([])
    with instrument(trace, legacy=True):
        assert len(Settings.callback_manager.handlers) == 1
        llm = openai(server)
        llm.callback_manager = Settings.callback_manager
        llm.chat(user())
    assert Settings.callback_manager.handlers == []
    assert len(trace.requests) == 1


def test_messages_are_kept_as_they_were(server: OpenAIServer) -> None:  # 35
    trace, messages = Trace(), user("before")
    with instrument(trace):
        stream = openai(server).stream_chat(messages)
        messages[0].content = "after"
        assert len(list(stream)) > 1  # nobody has read ahead
    assert trace.requests[0].prompt[0].content == "before"


@pytest.mark.parametrize("described", [
    {"class_name": "openai_llm", "model_name": "gpt-4o-mini", "num_output": 77},
    {"class_name": "openai_llm", "model": "gpt-4o-mini", "temperature": 0.3, "max_tokens": 77},
])  # fmt: skip
def test_both_forms_of_an_llms_description_are_read(described: dict[str, Any]) -> None:  # 36
    from llama_index.core.base.llms.types import ChatMessage, ChatResponse
    from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMChatStartEvent

    trace = Trace()
    handler = TraceEventHandler(trace)
    messages = user()
    handler.handle(LLMChatStartEvent(
        messages=messages, additional_kwargs={}, model_dict=described, span_id="x"
    ))  # fmt: skip
    said = ChatResponse(message=ChatMessage(role="assistant", content="hi"))
    handler.handle(LLMChatEndEvent(messages=messages, response=said, span_id="x"))
    [step] = trace.requests
    assert (step.model, step.params["max_output_asked"]) == ("gpt-4o-mini", 77)
    assert step.params["temperature"] == described.get("temperature")


def test_content_can_be_left_out_or_changed(server: OpenAIServer) -> None:
    bare, changed = Trace(), Trace()
    with instrument(bare, include_prompts=False), instrument(changed, redact=str.upper):
        openai(server).chat(user())
    assert (bare.requests[0].prompt[0].content, bare.requests[0].response) == ("", "")
    assert changed.requests[0].prompt[0].content == "HELLO THERE"
    assert bare.requests[0].tokens.input == changed.requests[0].tokens.input


def test_a_governed_request_is_left_to_its_governor(server: OpenAIServer) -> None:
    trace, other = Trace(Governor()), Trace()
    llm = GovernedLLM(openai(server), trace=trace)
    with instrument(trace), instrument(other):
        llm.chat(user())
        list(llm.stream_chat(user()))
    assert len(trace.requests) == len(other.requests) == 2


def test_retrievals_are_noted_and_spans_kept() -> None:
    trace, llm = Trace(), MockLLM(max_tokens=3)
    index = SummaryIndex([one.node for one in nodes()])
    with instrument(trace):
        spans = next(h for h in get_dispatcher().span_handlers if isinstance(h, TraceSpanHandler))
        index.as_query_engine(llm=llm).query("how many?")
    note = next(step for step in trace.steps if step.label == "retrieve")
    assert note.detail == {"query": "how many?", "found": 2}
    assert any(span.name == "RetrieverQueryEngine.query" for span in spans.spans)
    assert all(span.seconds is not None for span in spans.spans)


# --- the gate -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_gate_limits_an_llm_that_cannot_be_replaced(server: OpenAIServer, kind: str) -> None:
    llm, trace = openai(server, kind), Trace(Governor(max_calls=3))
    with install_gate(llm, trace):
        llm.chat(user())
        list(llm.stream_chat(user()))
        asyncio.run(llm.achat(user()))
        for ask in (llm.chat, llm.stream_chat, lambda m: asyncio.run(llm.achat(m))):
            with pytest.raises(RequestRefused):
                ask(user())
    assert len(server.requests) == trace.calls == 3
    assert [step.ok for step in trace.requests] == [True] * 3
    assert (len(trace.refusals), len(trace.raised), trace.ledger.held) == (3, 3, 0)
    assert trace.requests[0].tokens.provenance == "reported"
    assert llm.rate_limiter is None
    llm.chat(user())


def test_a_gate_counts_nested_calls_once() -> None:
    llm, trace = MockLLM(max_tokens=3), Trace(Governor(max_calls=2))
    with install_gate(llm, trace):
        llm.chat(user())
        asyncio.run(llm.achat(user()))
        with pytest.raises(RequestRefused):
            llm.chat(user())
    assert trace.calls == 2


def test_a_gate_settles_failures_and_closed_streams(server: OpenAIServer) -> None:
    llm, trace = openai(server, max_retries=0), Trace(Governor())
    server.queue(status=500)
    with install_gate(llm, trace):
        with pytest.raises(Exception, match="500"):
            llm.chat(user())
        stream = llm.stream_chat(user())
        next(stream)
        stream.close()
        left = llm.stream_chat(user())
    failed, closed, never = trace.requests
    assert (failed.status, failed.budget_pico) == (500, 0)
    assert (closed.cancelled, closed.tokens.provenance) == (True, "estimated")
    assert never.tokens.provenance == "bound"
    assert trace.ledger.held == 0
    del left


def test_a_gate_holds_embeddings_to_what_is_spent() -> None:
    model, trace = MockEmbedding(embed_dim=4), Trace(Governor(max_calls=1))
    with install_gate(model, trace):
        model.get_text_embedding("one two three")
        with pytest.raises(RequestRefused):
            model.get_text_embedding("four")
    assert trace.calls == 1
    assert trace.embed_tokens > 0


def test_a_gates_hole_is_known(server: OpenAIServer) -> None:
    llm, trace = openai(server, "responses"), Trace(Governor(max_calls=0))
    server.queue(text='{"name": "x"}')
    with install_gate(llm, trace):
        llm.structured_predict(_Form, PromptTemplate("a form"))
    assert len(server.requests) == 1  # what a gate cannot see; GovernedLLM refuses it


def test_a_gate_keeps_the_limiter_that_was_there() -> None:
    from llama_index.core.rate_limiter import TokenBucketRateLimiter

    limiter = TokenBucketRateLimiter(requests_per_minute=600)
    llm = MockLLM(max_tokens=3)
    llm.rate_limiter = limiter
    with install_gate(llm, governor=Governor()) as trace:
        llm.complete("hello")
    assert llm.rate_limiter is limiter
    assert trace.calls == 1
    with (
        pytest.raises(BadSettingError),
        install_gate(GovernedLLM(llm, governor=Governor()), Trace()),
    ):
        pass


def test_a_gate_and_handlers_of_one_trace_record_once(server: OpenAIServer) -> None:  # 31
    llm, model, trace = openai(server), MockEmbedding(embed_dim=4), Trace(Governor(max_calls=3))
    with instrument(trace), install_gate(llm, trace), install_gate(model, trace):
        llm.chat(user())
        list(llm.stream_chat(user()))
        model.get_text_embedding("one")
        with pytest.raises(RequestRefused):
            llm.chat(user())
    assert [step.step for step in trace.requests] == ["1", "2", "3"]
    assert trace.calls == 3


def test_leaving_content_out_holds_for_every_handler_of_a_trace(server: OpenAIServer) -> None:
    trace, llm = Trace(), openai(server)
    Settings.callback_manager = CallbackManager([])
    with instrument(trace, include_prompts=False, legacy=True):
        llm.callback_manager = Settings.callback_manager
        llm.chat(user("a secret"))
    assert "a secret" not in str(trace.export())
