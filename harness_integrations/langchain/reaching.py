"""What becomes of each part of a runnable that is to be governed, and what cannot be reached."""

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar, TypeVar

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.runnables import Runnable, RunnableGenerator, RunnableLambda
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from harness_core.errors import warn
from harness_integrations.langchain.walking import INSIDE, rebuilt_with
from harness_integrations.shared.governing import UngovernedError, UngovernedWarning

R = TypeVar("R")


class Governed:
    """Marks objects whose requests are on the call path."""

    is_governed: ClassVar[bool] = True


class Reach:
    """Puts the models and embeddings of a runnable under a budget; ``found`` is what it cannot.

    ``given`` are the budget's keywords, ``model`` and ``embeddings`` what wraps each.
    """

    def __init__(
        self,
        given: dict[str, Any],
        *,
        model: Callable[..., BaseChatModel],
        embeddings: Callable[..., Embeddings],
    ) -> None:
        self.given = given
        self.model = model
        self.embeddings = embeddings
        self.found: list[str] = []

    def govern(self, runnable: R, *, strict: bool = True) -> R:
        """The runnable, governed; see ``governing.govern``."""
        governed = rebuilt_with(runnable, self)
        if self.found:
            said = "no limit can see what these send: " + "; ".join(self.found)
            if strict:
                again = "strict=False goes on without them"
                raise UngovernedError(f"{said}. {again}", tuple(self.found))
            warn(UngovernedWarning(said))
        return governed

    def __call__(self, part: Any) -> Any:
        if is_governed(part):
            return part
        if isinstance(part, BaseChatModel):
            return self.model(part, **self.given)
        if isinstance(part, Embeddings):
            return self.embeddings(part, **self.given)
        if hasattr(type(part), "governed_by"):
            return part.governed_by(**self.given)
        return self._other(part)

    def _other(self, part: Any) -> Any:
        if (what := _other_model(part)) is not None:
            return self._lost(part, what)
        if isinstance(part, (RunnableLambda, RunnableGenerator)):
            return self._functions(part)
        if isinstance(part, BaseTool):
            self._functions(part)
            return INSIDE
        if isinstance(part, Runnable) and not isinstance(part, BaseModel):
            return self._lost(part, f"{type(part).__name__}: build it from governed models")
        self._store(part)
        return INSIDE

    def _store(self, part: Any) -> None:
        """A vector store embeds every query; it is no runnable and cannot be rebuilt."""
        store = getattr(part, "vectorstore", None)
        embeddings = getattr(store, "embeddings", None)
        if isinstance(embeddings, Embeddings) and not is_governed(embeddings):
            name = type(store).__name__
            self.found.append(f"the embeddings of {name}: build it with GovernedEmbeddings")

    def _functions(self, part: Any) -> Any:
        for function in _functions_of(part):
            name = getattr(function, "__name__", type(part).__name__)
            for inner in _reached(function):
                for model in self._free_models(inner):
                    self.found.append(f"{type(model).__name__} inside the function {name!r}")
        return part

    def _free_models(self, inner: Any) -> list[BaseChatModel]:
        """The chat models of a runnable that are under no budget."""
        free: list[BaseChatModel] = []

        def look(part: Any) -> Any:
            if is_governed(part):
                return part
            if isinstance(part, BaseChatModel):
                free.append(part)
                return part
            reader = hasattr(type(part), "governed_by")
            return part if reader and part.governed_by(**self.given) is part else INSIDE

        rebuilt_with(inner, look)
        return free

    def _lost(self, part: Any, what: str) -> Any:
        self.found.append(what)
        return part


def is_governed(part: Any) -> bool:
    """Whether an object's requests are on the call path already."""
    return isinstance(part, Governed)


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
