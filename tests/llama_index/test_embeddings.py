"""Embeddings under limits."""

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler

from harness_core import Governor, RequestRefused, Trace
from harness_integrations.llama_index import GovernedEmbedding
from tests.support.llama import embedding, nodes
from tests.support.openai_server import OpenAIServer


def test_requests_are_priced_and_recorded(server: OpenAIServer) -> None:
    model = GovernedEmbedding(embedding(server), governor=Governor())
    assert isinstance(model, BaseEmbedding)
    rows = model.get_text_embedding_batch(["one", "two"])
    assert rows == embedding(server).get_text_embedding_batch(["one", "two"])
    model.get_query_embedding("three")
    assert [step.label for step in model.trace.requests] == ["embed.documents", "embed.query"]
    assert model.trace.spent_usd > 0
    assert model.model_name == "text-embedding-3-small"
    assert "sk-secret" not in f"{model!r} {model.to_dict()}"


def test_what_is_refused_is_not_sent(server: OpenAIServer) -> None:
    model = GovernedEmbedding(embedding(server), governor=Governor(max_calls=0))
    with pytest.raises(RequestRefused):
        VectorStoreIndex([one.node for one in nodes()], embed_model=model)
    with pytest.raises(RequestRefused):
        model.get_query_embedding("x")
    assert server.requests == []
    assert len(model.trace.raised) == 2


@pytest.mark.anyio
async def test_async_requests_are_governed_too() -> None:
    model = GovernedEmbedding(MockEmbedding(embed_dim=4), governor=Governor(max_calls=2))
    assert len(await model.aget_text_embedding("x")) == 4
    assert len(await model.aget_query_embedding("x")) == 4
    with pytest.raises(RequestRefused):
        await model.aget_text_embedding("y")


def test_a_failing_provider_is_asked_once_and_raises_as_it_came(server: OpenAIServer) -> None:
    server.queue(times=5, status=500)
    model = GovernedEmbedding(embedding(server, max_retries=2), governor=Governor())
    with pytest.raises(Exception, match="500"):
        model.get_text_embedding("x")
    assert len(server.requests) == 1


def test_a_users_handlers_hear_each_text_once() -> None:
    tokens = TokenCountingHandler(tokenizer=str.split)
    bare = MockEmbedding(embed_dim=4, callback_manager=CallbackManager([tokens]))
    model = GovernedEmbedding(bare, trace=Trace())
    model.get_text_embedding_batch(["one two", "three"])
    assert tokens.total_embedding_token_count == 3
