"""``govern``: every model of a chain under one budget, or a list of what cannot be reached."""

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.runnables import Runnable, RunnableGenerator, RunnableLambda
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from harness_core.calls.ambient import trace_for
from harness_core.calls.cache import ResponseCache
from harness_core.calls.governor import Governor
from harness_core.calls.trace import Trace
from harness_core.errors import warn
from harness_integrations.langchain.embeddings import GovernedEmbeddings
from harness_integrations.langchain.models import GovernedChatModel
from harness_integrations.langchain.walking import INSIDE, models_in, rebuilt_with
from harness_integrations.shared.governing import UngovernedError, UngovernedWarning

R = TypeVar("R")


def govern(
    runnable: R,
    *,
    trace: Trace | None = None,
    governor: Governor | None = None,
    response_cache: ResponseCache | None = None,
    strict: bool = True,
) -> R:
    """The runnable with every chat model in it governed.

    That is in bindings, sequences, maps, branches, fallbacks, retries, alternatives, and in the
    fields of retrievers, compressors, tools and chains. The runnable given stays as it is. With
    neither ``trace`` nor ``governor`` the budget is that of the ``governed_run`` around each call.
    ``strict=False`` warns of what cannot be reached and notes it in the trace.

    Raises:
        UngovernedError: something in it can send requests that no limit would see.
    """
    walk = _Walk(trace, governor, response_cache)
    governed: R = rebuilt_with(runnable, walk)
    if not walk.found:
        return governed
    said = "no limit can see what these send: " + "; ".join(walk.found)
    if strict:
        raise UngovernedError(f"{said}. strict=False goes on without them", tuple(walk.found))
    warn(UngovernedWarning(said))
    if (known := trace_for(trace, governor)) is not None:
        known.note("ungoverned", found=list(walk.found))
    return governed


class _Walk:
    """What becomes of each part of a runnable, and what was found that cannot be governed."""

    def __init__(
        self, trace: Trace | None, governor: Governor | None, cache: ResponseCache | None
    ) -> None:
        self.given: dict[str, Any] = {
            "trace": trace, "governor": governor, "response_cache": cache,
        }  # fmt: skip
        self.found: list[str] = []

    def __call__(self, part: Any) -> Any:
        if isinstance(part, (GovernedChatModel, GovernedEmbeddings)):
            return part
        if isinstance(part, BaseChatModel):
            return GovernedChatModel(part, **self.given)
        if isinstance(part, Embeddings):
            return GovernedEmbeddings(part, **self.given)
        if hasattr(type(part), "governed_by"):
            return part.governed_by(**self.given)
        return self._other(part)

    def _other(self, part: Any) -> Any:
        kind = type(part).__name__
        if (what := _other_model(part)) is not None:
            return self._lost(part, what)
        if isinstance(part, (RunnableLambda, RunnableGenerator)):
            return self._functions(part, list(_functions_of(part)))
        if isinstance(part, BaseTool):
            self._functions(part, list(_functions_of(part)))
            return INSIDE
        if isinstance(part, Runnable) and not isinstance(part, BaseModel):
            return self._lost(part, f"{kind}: build it from governed models")
        self._store(part)
        return INSIDE

    def _store(self, part: Any) -> None:
        """A vector store embeds every query; it is no runnable and cannot be rebuilt."""
        store = getattr(part, "vectorstore", None)
        embeddings = getattr(store, "embeddings", None)
        if isinstance(embeddings, Embeddings) and not isinstance(embeddings, GovernedEmbeddings):
            name = type(store).__name__
            self.found.append(f"the embeddings of {name}: build it with GovernedEmbeddings")

    def _functions(self, part: Any, functions: list[Callable[..., Any]]) -> Any:
        for function in functions:
            name = getattr(function, "__name__", type(part).__name__)
            for inner in _reached(function):
                for model in models_in(inner):
                    if not isinstance(model, GovernedChatModel):
                        self.found.append(f"{type(model).__name__} inside the function {name!r}")
        return part

    def _lost(self, part: Any, what: str) -> Any:
        self.found.append(what)
        return part


def _other_model(part: Any) -> str | None:
    """What kind of model a part is that is no chat model."""
    kind = type(part).__name__
    if isinstance(part, BaseLanguageModel):
        return f"{kind}, a completion model"
    if kind == "_ConfigurableModel":
        return "a model that is made at run time (init_chat_model)"
    decides = any(one.__name__ == "BaseDecisionModel" for one in type(part).__mro__)
    return f"{kind}, a decision model" if decides else None


def _functions_of(part: Any) -> Iterator[Callable[..., Any]]:
    for name in ("func", "afunc", "coroutine", "_transform", "_atransform"):
        function = getattr(part, name, None)
        while isinstance(function, partial):
            function = function.func
        if callable(function):
            yield function


def _reached(function: Callable[..., Any]) -> Iterator[Any]:
    """The runnables that a function names: of its closure, its module, and its own object."""
    owner = getattr(function, "__self__", None)
    if owner is not None:
        yield from (value for value in vars(owner).values() if isinstance(value, Runnable))
    try:
        names = inspect.getclosurevars(function)
    except (TypeError, ValueError):
        return
    for value in (*names.nonlocals.values(), *names.globals.values()):
        if isinstance(value, Runnable):
            yield value
