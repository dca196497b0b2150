"""LangChain's objects in a test: governed ones that record, replays that need no provider."""

from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable

from harness_integrations.langchain.asking import model_name
from harness_integrations.langchain.embeddings import GovernedEmbeddings
from harness_integrations.langchain.governing import govern
from harness_integrations.langchain.models import GovernedChatModel
from harness_integrations.langchain.testing import ReplayChatModel
from harness_integrations.langchain.walking import INSIDE, rebuilt_with
from harness_integrations.pytest_plugin.clients import ReplayingClient
from harness_integrations.pytest_plugin.replaying import scrubbed

if TYPE_CHECKING:
    from harness_integrations.pytest_plugin.recorder import HarnessRecording


def chat_model(recording: "HarnessRecording", real: Any) -> BaseChatModel:
    """A chat model that replays the recording, or is recorded; a governed one keeps its limits."""
    known = real if isinstance(real, BaseChatModel) else None
    if recording.sends:
        known = recording.real(real, lambda one: isinstance(one, BaseChatModel), "a chat model")
    bare = _bare(recording, known)
    if recording.sends:
        return GovernedChatModel(bare, trace=recording.trace)
    model = ReplayChatModel(recording.recording, like=bare, trace=recording.trace)
    scrubbed(model.client, recording.scrubber)
    return model


def embeddings(recording: "HarnessRecording", real: Any) -> Embeddings:
    """Embeddings that replay recorded vectors, or are recorded."""
    if recording.sends:
        known = recording.real(real, lambda one: isinstance(one, Embeddings), "embeddings")
        bound = known.bound if isinstance(known, GovernedEmbeddings) else known
        made = GovernedEmbeddings(bound, trace=recording.trace)
        recording.note("embeddings", framework="langchain", model=made.model)
        return made
    said = recording.next_noted("embeddings")
    name = model_name(real) if isinstance(real, Embeddings) else str(said.get("model", ""))
    made = GovernedEmbeddings(_Unsent(), model=name, trace=recording.trace)
    client = ReplayingClient(recording.recording, recording.scrubber)
    client.model = client.embedding_model = name
    made._client = client  # type: ignore[assignment]  # noqa: SLF001 - what answers in its place
    return made


def runnable(recording: "HarnessRecording", real: Any) -> Any:
    """A runnable whose models replay the recording, or are recorded."""
    chain = recording.real(real, lambda one: isinstance(one, Runnable), "a runnable")
    if recording.sends:
        return govern(chain, trace=recording.trace)

    def replace(part: Any) -> Any:
        if isinstance(part, BaseChatModel):
            return chat_model(recording, part)
        return embeddings(recording, part) if isinstance(part, Embeddings) else INSIDE

    return rebuilt_with(chain, replace)


def _bare(recording: "HarnessRecording", model: BaseChatModel | None) -> Any:
    """The model inside a governed one, whose limits become the recording's."""
    while isinstance(model, GovernedChatModel):
        recording.limits_of(model.own_trace, model.governor)
        model = model.bound
    return model


class _Unsent(Embeddings):
    """Stands for embeddings whose package need not be installed."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise RuntimeError("recorded embeddings cannot be asked")

    def embed_query(self, text: str) -> list[float]:
        raise RuntimeError("recorded embeddings cannot be asked")
