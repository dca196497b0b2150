"""Flow tests: each embedding flow is driven by a few lines that serve what it yields."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from harness_core.client import BaseClient
from harness_core.config import override
from harness_core.errors import (
    AuthError,
    BadSettingError,
    EmbedError,
    EmbedFallbackWarning,
    NoEmbeddingsWarning,
    ReplayNoEmbeddingsWarning,
    UnknownMethodError,
)
from harness_core.flows.types import Flow, Work
from harness_core.messages import Embeddings, Texts
from harness_core.models import count_tokens, register_model, unregister_model
from harness_core.ranking import embedders, vectors
from harness_core.ranking.embedders import (
    Vectors,
    embed_texts,
    list_embedders,
    register_embedder,
    unknown_texts,
)
from harness_core.ranking.vectors import flush_embeddings


class Client(BaseClient):
    """Embeds a text as its length and a one, and keeps what it was asked."""

    embedding_model = "fake-embed"
    base_url = "fake://one"
    can_embed = True

    def __init__(self, answer: Callable[[Texts], Embeddings] | None = None) -> None:
        self.asked: list[Texts] = []
        self.answer = answer

    def embed(self, request: Texts, /) -> Embeddings:
        self.asked.append(request)
        if self.answer is not None:
            return self.answer(request)
        return given([[len(text), 1.0] for text in request.texts])


class Mute(BaseClient):
    pass


def given(rows: Any, **more: Any) -> Embeddings:
    return Embeddings(ok=True, vectors=np.asarray(rows), **more)


def run(flow: Flow[Vectors], client: BaseClient | None = None) -> Vectors:
    answer: Any = None
    while True:
        try:
            todo = flow.send(answer)
        except StopIteration as stop:
            result: Vectors = stop.value
            return result
        if isinstance(todo, Work):
            answer = todo.function()
        else:
            assert isinstance(todo, tuple)
            assert client is not None
            answer = [client.embed(one) for one in todo if isinstance(one, Texts)]


def embed(texts: list[str], client: BaseClient, **more: Any) -> Vectors:
    return run(embed_texts(texts, client, **more), client)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(embedders, "_registry", dict(embedders._registry))
    register_model("fake-embed", context_window=100, input_usd=0, kind="embedding", dimensions=2)
    yield
    unregister_model("fake-embed")
    flush_embeddings()


# --- the client's own ---------------------------------------------------------------------------


def test_the_clients_own_vectors_come_back_as_unit_rows_in_order() -> None:
    notes: list[tuple[str, Any]] = []
    client = Client()
    made = embed(["four", "", "six666"], client, record=lambda *note: notes.append(note))
    assert made.source == "api"
    assert not made.fallback
    assert made.matrix == pytest.approx(np.array([[4, 1], [0, 1], [6, 1]])
                                        / np.sqrt([[17], [1], [37]]))  # fmt: skip
    assert notes == [("embed", {"n": 3, "dim": 2, "source": "api"})]
    assert client.asked == [Texts(texts=("four", "", "six666"), model="fake-embed")]


def test_no_texts_ask_for_nothing() -> None:
    client = Client()
    made = embed([], client)
    assert (made.matrix.shape, made.source, client.asked) == ((0, 0), "api", [])


def test_texts_go_out_in_batches_side_by_side() -> None:
    client = Client()
    flow = embed_texts([f"text {n}" for n in range(150)], client)
    batch = flow.send(None)
    assert isinstance(batch, tuple)
    assert [len(one.texts) for one in batch if isinstance(one, Texts)] == [64, 64, 22]
    flow.close()
    embed(["a", "b", "c"], client, batch_size=0)
    assert [one.texts for one in client.asked] == [("a",), ("b",), ("c",)]


def test_a_text_past_the_models_window_is_cut_and_noted() -> None:
    notes: list[tuple[str, Any]] = []
    client = Client()
    long = "some words " * 100
    embed([long, "short"], client, record=lambda *note: notes.append(note))
    sent = client.asked[0].texts
    assert long.startswith(sent[0])
    assert 70 < count_tokens(sent[0]) <= 84
    assert sent[1] == "short"
    where, cut = notes[0]
    assert (where, cut["where"], cut["limit"]) == ("truncate", "embed.input", 84)
    assert cut["tokens_before"] - cut["tokens_kept"] == cut["tokens_dropped"] > 0


def test_another_model_can_be_asked() -> None:
    register_model("other", context_window=100, input_usd=0, kind="embedding")
    client = Client()
    embed(["x"], client, model="other")
    assert client.asked[0].model == "other"
    unregister_model("other")


# --- the memory ---------------------------------------------------------------------------------


def test_what_was_asked_for_before_is_not_asked_again() -> None:  # core 146
    client = Client()
    first = embed(["a", "bb", "a"], client)
    again = embed(["bb", "a"], client)
    assert [one.texts for one in client.asked] == [("a", "bb")]
    assert (again.matrix == first.matrix[[1, 0]]).all()
    embed(["bb", "ccc"], client)
    assert client.asked[-1].texts == ("ccc",)


def test_what_would_be_asked_for_can_be_foreseen() -> None:
    client = Client()
    assert unknown_texts(["a", "bb", "a"], client) == 2
    embed(["a"], client)
    assert unknown_texts(["a", "bb", "a"], client) == 1
    with override(cache_embeddings=False):
        assert unknown_texts(["a", "bb", "a"], client) == 2
    assert len(client.asked) == 1


@pytest.mark.parametrize("off", ["setting", "argument", "flush"])
def test_the_memory_can_be_off_or_emptied(off: str) -> None:
    client = Client()
    embed(["a"], client)
    with override(cache_embeddings=off != "setting"):
        if off == "flush":
            flush_embeddings()
        embed(["a"], client, use_cache=False if off == "argument" else None)
    assert len(client.asked) == 2


def test_another_clients_vectors_are_never_taken() -> None:
    first, second, third = Client(), Client(), Client()
    second.base_url = "fake://two"
    third.identity = "third"
    for client in (first, second, third):
        embed(["a"], client)
    assert [len(client.asked) for client in (first, second, third)] == [1, 1, 1]


def test_a_client_that_cannot_be_told_apart_is_not_remembered() -> None:
    client = Client()
    client.base_url = ""
    embed(["a"], client)
    embed(["a"], client)
    assert len(client.asked) == 2


def test_one_call_is_kept_whole_and_trimmed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "CACHE_BYTES", 3 * 16)
    client = Client()
    embed(["a", "b", "c", "d", "e"], client)
    embed(["a", "b"], client)  # the whole call, over the limit; now the latest used
    assert len(client.asked) == 1
    embed(["new"], client)
    embed(["a", "b"], client)
    assert len(client.asked) == 2
    embed(["c", "d"], client)
    assert client.asked[-1].texts == ("c", "d")


# --- falling back -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        Embeddings(ok=False, error="status 401: no such model", step="2"),
        Embeddings(ok=False, refused=True, error="refused: cost", step="2"),
        given([[1.0, 0.0]], step="2"),
        given([[], []], step="2"),
        given([[1.0, np.nan], [1.0, 0.0]], step="2"),
        given([[0.0, 0.0], [1.0, 0.0]], step="2"),
        Embeddings(ok=True, vectors=None, step="2"),
    ],
)
def test_a_failed_request_falls_back_and_names_its_step(
    answer: Embeddings,
) -> None:  # core 141, 144
    notes: list[tuple[str, Any]] = []
    client = Client(lambda _: answer)
    with pytest.warns(EmbedFallbackWarning):
        made = embed(["one", "two"], client, record=lambda *note: notes.append(note))
    assert (made.source, made.fallback, made.failed_steps) == ("lexical", True, ("2",))
    assert made.matrix.shape == (2, 512)
    assert made.reason
    assert notes[-1][1] == {"n": 2, "dim": 512, "source": "lexical", "fallback": True}


def test_the_warning_says_what_the_provider_said() -> None:  # core 145
    client = Client(lambda _: Embeddings(ok=False, error="status 401: wrong key"))
    with pytest.warns(EmbedFallbackWarning, match="status 401: wrong key; lexical vectors"):
        embed(["one"], client)


def test_what_arrived_beside_a_failure_is_kept() -> None:
    def second_fails(request: Texts) -> Embeddings:
        if request.texts == ("b",) and len(client.asked) == 2:
            return Embeddings(ok=False, error="busy")
        return given([[1.0, 2.0]])

    client = Client(second_fails)
    with pytest.warns(EmbedFallbackWarning):
        embed(["a", "b"], client, batch_size=1)
    assert embed(["a", "b"], client).source == "api"
    assert [one.texts for one in client.asked] == [("a",), ("b",), ("b",)]


def test_batches_of_different_widths_fail() -> None:
    client = Client(lambda request: given([[1.0] * len(request.texts[0])]))
    with pytest.warns(EmbedFallbackWarning, match="different lengths"):
        embed(["a", "bb"], client, batch_size=1)


def test_a_client_without_embeddings_falls_back_with_its_own_warning() -> None:  # core 140
    with pytest.warns(NoEmbeddingsWarning):
        made = embed(["one"], Mute())
    assert (made.source, made.fallback, made.failed_steps) == ("lexical", True, ())


def test_lexical_vectors_on_purpose_are_no_fallback() -> None:  # core 140, 142
    client = Client()
    with override(embedder="lexical"):
        made = embed(["one"], client)
        assert not embed(["one"], Mute()).fallback
    assert (made.source, made.fallback, client.asked) == ("lexical", False, [])


def test_the_fallback_can_be_an_error_or_nothing() -> None:
    with pytest.raises(EmbedError, match="cannot embed"):
        embed(["one"], Mute(), fallback="error")
    with pytest.warns(NoEmbeddingsWarning):
        made = embed(["one"], Mute(), fallback="none")
    assert (made.matrix.shape, made.source, made.fallback) == ((0, 0), "none", True)


def test_a_credential_that_is_missing_stops_the_run() -> None:
    flow = embed_texts(["one"], Client())
    flow.send(None)
    with pytest.raises(AuthError):
        flow.throw(AuthError("no key"))


@pytest.mark.parametrize("name", ["api", "lexical"])
def test_a_replay_may_forbid_an_embedder(name: str) -> None:
    client, asked = Client(), list[str]()

    def allow(embedder: str) -> bool:
        asked.append(embedder)
        return False

    with pytest.warns(ReplayNoEmbeddingsWarning):
        made = embed(["one"], client, embedder=name, allow=allow)
    assert (asked, client.asked, made.source, made.fallback) == ([name], [], "lexical", True)
    assert embed(["one"], client, allow=lambda _: True).source == "api"


# --- registered ones ----------------------------------------------------------------------------


def test_a_registered_embedder_is_used_by_name_or_by_the_setting() -> None:
    seen: list[Mapping[str, Any]] = []

    def lengths(texts: list[str], params: Mapping[str, Any]) -> list[list[int]]:
        seen.append(params)
        return [[len(text), 0] for text in texts]

    client = Client()
    assert register_embedder("lengths", lengths, "By length.", deterministic=True) == "lengths"
    made = embed(["one", ""], client, embedder="lengths")
    assert (made.source, made.matrix.tolist()) == ("lengths", [[1, 0], [0, 0]])
    with override(embedder="lengths"):
        assert embed(["one"], client).source == "lengths"
    assert embed(["one"], client, embedder=lengths).source == "custom"
    assert seen[0] == {"client": client, "model": "fake-embed", "batch_size": 64}
    assert client.asked == []
    assert list_embedders()[1:] == [
        {"name": "lengths", "deterministic": True, "description": "By length."},
        {"name": "lexical", "deterministic": True, "description": "Hashed words, in the process."},
    ]


def fails(texts: list[str], params: Mapping[str, Any]) -> Any:
    raise ValueError("out of order")


@pytest.mark.parametrize(
    ("fn", "reason"),
    [
        (fails, "ValueError: out of order"),
        (lambda texts, _: [[1.0]], "2 texts"),
        (lambda texts, _: [[], []], "no dimensions"),
        (lambda texts, _: [[1.0], [np.inf]], "not finite"),
        (lambda texts, _: [[1.0], [1.0, 2.0]], "different lengths"),
        (lambda texts, _: "text", "not numbers"),
        (lambda texts, _: None, "shape"),
    ],
)
def test_a_registered_embedder_that_fails_falls_back(fn: Any, reason: str) -> None:  # core 141
    register_embedder("broken", fn)
    with pytest.warns(EmbedFallbackWarning, match=reason):
        assert embed(["one", "two"], Client(), embedder="broken").matrix.shape == (2, 512)


def test_a_registered_embedder_without_credentials_stops_the_run() -> None:
    def locked(texts: list[str], params: Mapping[str, Any]) -> Any:
        raise AuthError("no key")

    with pytest.raises(AuthError):
        embed(["one"], Client(), embedder=locked)


def test_names_must_be_known_and_of_their_own() -> None:
    with pytest.raises(UnknownMethodError, match=r"'nope'.*api, lexical"):
        embed(["one"], Client(), embedder="nope")
    for name in ("", "api", "lexical"):
        with pytest.raises(BadSettingError):
            register_embedder(name, fails)
