"""Embedders by name, and the flow that turns texts into vectors or says why it could not."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from harness_core.client import Client
from harness_core.config import setting
from harness_core.errors import (
    AuthError,
    BadSettingError,
    EmbedError,
    EmbedFallbackWarning,
    HarnessWarning,
    NoEmbeddingsWarning,
    ReplayExhaustedError,
    ReplayMissError,
    ReplayNoEmbeddingsWarning,
    UnknownMethodError,
    warn,
)
from harness_core.flows.ask import ask_vectors
from harness_core.flows.types import Flow, Work
from harness_core.messages import Embeddings, Texts
from harness_core.models import count_tokens, model_info, truncate_tokens
from harness_core.ranking.lexical import lexical_vectors
from harness_core.ranking.vectors import Vectors as Vectors
from harness_core.ranking.vectors import checked_rows, recall, remember
from harness_core.ranking.vectors import flush_embeddings as flush_embeddings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Embed: TypeAlias = Callable[[list[str], Mapping[str, Any]], Any]
Record: TypeAlias = Callable[[str, Mapping[str, Any]], object]
Fallback: TypeAlias = Literal["lexical", "error", "none"]

BATCH: Final = 64
"""Texts of one request, at the most, where nothing else is asked for."""

_STOPS: Final = (AuthError, ReplayMissError, ReplayExhaustedError)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Embedder:
    name: str
    fn: Embed | None = None  # None: the client's own, or the lexical one
    description: str = ""
    deterministic: bool = False


_API = _Embedder(name="api", description="The client's own embeddings.")
_LEXICAL = _Embedder(
    name="lexical", description="Hashed words, in the process.", deterministic=True
)
_registry: dict[str, _Embedder] = {one.name: one for one in (_API, _LEXICAL)}


# --- the registry -------------------------------------------------------------------------------


def register_embedder(
    name: str, fn: Embed, description: str = "", deterministic: bool = False
) -> str:
    """Make ``fn(texts, params)`` an embedder; it gives one row of numbers per text.

    ``params`` has client, model and batch_size. A deterministic one gives the same vectors in every
    process, so a replay can use it again. Returns the name; a name used before is replaced.

    Raises:
        BadSettingError: a blank name, or that of a built-in embedder.
    """
    if not name.strip() or name in (_API.name, _LEXICAL.name):
        raise BadSettingError(f"an embedder cannot be registered as {name!r}")
    _registry[name] = _Embedder(
        name=name, fn=fn, description=description, deterministic=deterministic
    )
    return name


def list_embedders() -> list[dict[str, Any]]:
    """A row per embedder, by name: name, deterministic, description."""
    return [
        {"name": one.name, "deterministic": one.deterministic, "description": one.description}
        for _, one in sorted(_registry.items())
    ]


def is_deterministic(name: str) -> bool:
    """Whether the embedder of that name gives the same vectors in every process."""
    known = _registry.get(name)
    return known is not None and known.deterministic


def _chosen(embedder: str | Embed | None, client: Client) -> _Embedder:
    wanted = embedder or setting("embedder") or client.embedder
    if wanted is None:
        return _API
    if callable(wanted):
        return _Embedder(name="custom", fn=wanted)
    if wanted not in _registry:
        listed = ", ".join(sorted(_registry))
        raise UnknownMethodError(f"unknown embedder {wanted!r}; the registered ones are {listed}")
    return _registry[wanted]


# --- embedding ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    """Why there are no vectors, and the warning that says so."""

    reason: str
    steps: tuple[str, ...] = ()
    warning: type[HarnessWarning] = EmbedFallbackWarning


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    embedder: _Embedder
    client: Client
    model: str
    batch_size: int
    use_cache: bool
    note: Record


def embed_texts(
    texts: Iterable[str],
    client: Client,
    *,
    model: str | None = None,
    embedder: str | Embed | None = None,
    fallback: Fallback = "lexical",
    batch_size: int = BATCH,
    use_cache: bool | None = None,
    record: Record | None = None,
    allow: Callable[[str], bool] | None = None,
) -> Flow[Vectors]:
    """One vector per text.

    They are made by ``embedder``, else the setting's, else the one the client prefers, else the
    client's own (``api``). The client's texts are cut to the model's window less 16 tokens and
    asked for in batches; what this process has asked for before it does not ask again, unless
    ``use_cache`` (the setting ``cache_embeddings``) is off. What fails or is refused falls back,
    with a warning: to lexical vectors, to an error, or to none (an empty matrix). ``allow`` may
    forbid an embedder by its name, as a replay does. ``record(label, detail)`` notes each cut and
    the outcome.

    Raises:
        EmbedError: no vectors, under ``fallback="error"``.
        UnknownMethodError: no embedder has that name.
    """
    asked = list(texts)
    call = _Call(
        embedder=_chosen(embedder, client),
        client=client,
        model=model or client.embedding_model,
        batch_size=min(max(batch_size, 1), 2048),
        use_cache=setting("cache_embeddings") if use_cache is None else use_cache,
        note=record or _unnoted,
    )
    name = call.embedder.name
    if not asked:
        return Vectors(matrix=_empty(), source=name)
    found: NDArray[np.float64] | _Failed
    if allow is None or allow(name):
        found = yield from _vectors(asked, call)
    else:
        reason = f"the recording's vectors cannot be made again by the embedder {name!r}"
        found = _Failed(reason=reason, warning=ReplayNoEmbeddingsWarning)
    if isinstance(found, _Failed):
        return (yield from _fallen_back(asked, found, fallback, call.note))
    call.note("embed", {"n": len(asked), "dim": found.shape[1], "source": name})
    return Vectors(matrix=found, source=name)


def unknown_texts(texts: Iterable[str], client: Client, *, model: str | None = None) -> int:
    """How many texts ``embed_texts`` would ask the client for: distinct ones not remembered."""
    call = _Call(
        embedder=_API,
        client=client,
        model=model or client.embedding_model,
        batch_size=1,
        use_cache=setting("cache_embeddings"),
        note=_unnoted,
    )
    keys = set(_keys(texts, call))
    return len(keys) - (len(recall(keys)) if call.use_cache else 0)


def _unnoted(label: str, detail: Mapping[str, Any]) -> None:
    """Where nobody keeps a record."""


def _fallen_back(
    texts: Sequence[str], failed: _Failed, fallback: Fallback, note: Record
) -> Flow[Vectors]:
    if fallback == "error":
        raise EmbedError(f"no vectors: {failed.reason}")
    instead = "nothing is ranked by them" if fallback == "none" else "lexical vectors are used"
    warn(failed.warning(f"no vectors: {failed.reason}; {instead}"))
    matrix = _empty() if fallback == "none" else (yield Work(lambda: lexical_vectors(texts)))
    source = "none" if fallback == "none" else _LEXICAL.name
    note("embed", {"n": len(matrix), "dim": matrix.shape[1], "source": source, "fallback": True})
    return Vectors(
        matrix=matrix,
        source=source,
        fallback=True,
        reason=failed.reason,
        failed_steps=failed.steps,
    )


def _vectors(texts: list[str], call: _Call) -> "Flow[NDArray[np.float64] | _Failed]":
    if call.embedder is _LEXICAL:
        lexical: NDArray[np.float64] = yield Work(lambda: lexical_vectors(texts))
        return lexical
    if call.embedder.fn is not None:
        made = yield Work(lambda: _made(texts, call))
        return _Failed(reason=made) if isinstance(made, str) else made
    if not call.client.can_embed:
        return _Failed(reason="the client cannot embed", warning=NoEmbeddingsWarning)
    return (yield from _asked(texts, call))


def _made(texts: list[str], call: _Call) -> "NDArray[np.float64] | str":
    """What a registered function gives, or what is wrong with it."""
    params = {"client": call.client, "model": call.model, "batch_size": call.batch_size}
    try:
        given = call.embedder.fn(texts, params) if call.embedder.fn else None
    except _STOPS:
        raise
    except Exception as failure:  # noqa: BLE001 - foreign code may fail in any way
        return f"{type(failure).__name__}: {failure}"
    return checked_rows(given, len(texts))


def _asked(texts: list[str], call: _Call) -> "Flow[NDArray[np.float64] | _Failed]":
    """The client's vectors: those remembered, and those it gives for the rest."""
    keys = _keys(texts, call)
    rows = recall(keys) if call.use_cache else {}
    missing = [key for key in dict.fromkeys(keys) if key not in rows]
    batches = [missing[i : i + call.batch_size] for i in range(0, len(missing), call.batch_size)]
    outcomes = yield from ask_vectors(
        Texts(texts=tuple(key.text for key in batch), model=call.model) for batch in batches
    )
    reasons, steps = [], []
    for batch, outcome in zip(batches, outcomes, strict=True):
        found = _rows(outcome, len(batch))
        if isinstance(found, str):
            reasons.append(found)
            steps += [outcome.step] if outcome.step is not None else []
        else:
            rows.update(zip(batch, found, strict=True))
    if call.use_cache and _tellable(call.client):
        remember({key: rows[key] for key in missing if key in rows})
    if reasons:
        return _Failed(reason=reasons[0], steps=tuple(steps))
    together = checked_rows([rows[key] for key in keys], len(keys))
    return _Failed(reason=together) if isinstance(together, str) else together


def _rows(outcome: Embeddings, n: int) -> "NDArray[np.float64] | str":
    if not outcome.ok:
        return outcome.error or "the request failed"
    return checked_rows(outcome.vectors, n, zeros=False)


class _Key(NamedTuple):
    model: str
    base_url: str
    identity: str | None
    text: str


def _keys(texts: Iterable[str], call: _Call) -> list[_Key]:
    limit = max(16, model_info(call.model).context_window - 16)
    base_url, identity = call.client.base_url, call.client.identity
    return [_Key(call.model, base_url, identity, _cut(text, limit, call)) for text in texts]


def _tellable(client: Client) -> bool:
    """Whether another client's vectors could not be taken for this one's."""
    return bool(client.base_url) or client.identity is not None


def _cut(text: str, limit: int, call: _Call) -> str:
    before = count_tokens(text, call.model)
    if before <= limit:
        return text
    kept = truncate_tokens(text, limit, "", model=call.model)
    tokens = count_tokens(kept, call.model)
    detail = {"where": "embed.input", "limit": limit, "tokens_before": before}
    call.note("truncate", {**detail, "tokens_kept": tokens, "tokens_dropped": before - tokens})
    return kept


def _empty() -> "NDArray[np.float64]":
    import numpy as np

    return np.zeros((0, 0))
