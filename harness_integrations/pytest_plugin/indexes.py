"""LlamaIndex's objects in a test: governed ones that record, replays that need no provider."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from llama_index.core import Settings
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM

from harness_integrations.llama_index.asking import model_name
from harness_integrations.llama_index.embeddings import GovernedEmbedding
from harness_integrations.llama_index.governed import GovernedLLM, govern_llm
from harness_integrations.llama_index.testing import ReplayLLM
from harness_integrations.pytest_plugin.clients import ReplayingClient
from harness_integrations.pytest_plugin.replaying import scrubbed
from harness_integrations.pytest_plugin.targets import framework_of, makes

if TYPE_CHECKING:
    from harness_integrations.pytest_plugin.recorder import HarnessRecording


def llm(recording: "HarnessRecording", real: Any) -> LLM:
    """An LLM that replays the recording, or is recorded; a governed one keeps its limits."""
    known = real if isinstance(real, LLM) else None
    if recording.sends:
        known = recording.real(real, lambda one: isinstance(one, LLM), "an LLM")
    if isinstance(known, GovernedLLM):
        recording.limits_of(known._own_trace, known._governor)  # noqa: SLF001 - no public way
        known = known.llm
    if recording.sends:
        return govern_llm(known, trace=recording.trace, allow_uncapped=True)  # type: ignore[arg-type]  # made above
    made = ReplayLLM(recording.recording, like=known, trace=recording.trace)
    client: Any = made._client  # noqa: SLF001 - what answers for it
    scrubbed(client, recording.scrubber)
    client.governed = made  # a reader that asks through it reads on this trace, as one that records
    return made


def embeddings(recording: "HarnessRecording", real: Any) -> BaseEmbedding:
    """Embeddings that replay recorded vectors, or are recorded."""
    if recording.sends:
        known = recording.real(real, lambda one: isinstance(one, BaseEmbedding), "embeddings")
        bound = known.bound if isinstance(known, GovernedEmbedding) else known
        made = GovernedEmbedding(bound, trace=recording.trace)
        recording.note(
            "embeddings", framework="llama_index", model=model_name(bound),
            batch=bound.embed_batch_size,
        )  # fmt: skip
        return made
    said = recording.next_noted("embeddings")
    batch = int(said.get("batch", 10))
    name = str(said.get("model", ""))
    if isinstance(real, BaseEmbedding):
        name, batch = model_name(real), real.embed_batch_size
    made = GovernedEmbedding(_Unsent(embed_batch_size=batch), model=name, trace=recording.trace)
    client = ReplayingClient(recording.recording, recording.scrubber)
    client.model = client.embedding_model = name
    made._client = client  # noqa: SLF001 - what answers in its place
    return made


def settings(recording: "HarnessRecording", llm_: Any, embed_model: Any) -> Any:
    """LlamaIndex's ``Settings`` with an LLM (and embeddings) that replay or record."""
    before = (Settings._llm, Settings._embed_model)  # noqa: SLF001 - asking for them makes them

    def restore() -> None:
        Settings._llm, Settings._embed_model = before  # noqa: SLF001

    recording.restore(restore)
    if llm_ is not None or before[0] is not None or not recording.sends:
        Settings.llm = llm(recording, llm_ if llm_ is not None else before[0])
    wanted = embed_model if embed_model is not None else before[1]
    if wanted is not None or recording.noted("embeddings"):
        Settings.embed_model = embeddings(recording, wanted)
    return Settings


def engine(recording: "HarnessRecording", real: Any) -> Any:
    """``real`` with every LLM and embedding in it replaced, until the test has ended."""
    made = real() if makes(real) else real
    doubles: dict[int, Any] = {}
    for owner, name, part in list(_parts(made)):
        if id(part) not in doubles:
            double = llm(recording, part) if isinstance(part, LLM) else embeddings(recording, part)
            doubles[id(part)] = double
        _put(owner, name, doubles[id(part)])
        recording.restore(lambda owner=owner, name=name, part=part: _put(owner, name, part))  # type: ignore[misc]  # bound now
    return made


def _parts(whole: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Where the LLMs and embeddings of an object stand: its owner, its name there, itself."""
    seen: set[int] = set()
    waiting = [whole]
    while waiting:
        owner = waiting.pop()
        if id(owner) in seen:
            continue
        seen.add(id(owner))
        for name, value in _members(owner):
            if isinstance(value, (LLM, BaseEmbedding)):
                yield owner, name, value
            elif isinstance(value, (list, dict)) or framework_of(value) == "llama_index":
                waiting.append(value)


def _members(owner: Any) -> list[tuple[Any, Any]]:
    if isinstance(owner, list):
        return list(enumerate(owner))
    if isinstance(owner, Mapping):
        return list(owner.items())
    private = getattr(owner, "__pydantic_private__", None) or {}
    return [*getattr(owner, "__dict__", {}).items(), *private.items()]


def _put(owner: Any, name: Any, value: Any) -> None:
    if isinstance(owner, (list, dict)):
        owner[name] = value
    elif name in (getattr(owner, "__pydantic_private__", None) or {}):
        owner.__pydantic_private__[name] = value
    else:
        owner.__dict__[name] = value  # below validation: it is the same kind of thing


class _Unsent(BaseEmbedding):
    """Stands for embeddings whose package need not be installed."""

    def _get_query_embedding(self, query: str) -> list[float]:
        raise RuntimeError("recorded embeddings cannot be asked")

    async def _aget_query_embedding(self, query: str) -> list[float]:
        raise RuntimeError("recorded embeddings cannot be asked")

    def _get_text_embedding(self, text: str) -> list[float]:
        raise RuntimeError("recorded embeddings cannot be asked")
