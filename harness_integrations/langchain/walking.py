"""Walking what a runnable is made of, and rebuilding it with some of its parts replaced."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from pydantic import BaseModel

T = TypeVar("T")

INSIDE: Final = object()
"""Said of a part that stays, and whose own parts are to be looked at."""

Replace = Callable[[Any], Any]
"""Gives what takes a part's place (the part itself: it stays whole), or ``INSIDE``."""


def rebound(built: T, old: Any, new: Any) -> T:
    """A runnable with one part of it, wherever it stands, replaced by another."""
    return rebuilt_with(built, lambda part: new if part is old else INSIDE)


def rebuilt_with(whole: T, replace: Replace) -> T:
    """``whole`` with its parts replaced, the outermost first; unchanged parts are shared."""
    built: T = _rebuilt(whole, replace, frozenset())
    return built


def _rebuilt(part: Any, replace: Replace, inside: frozenset[int]) -> Any:
    if id(part) in inside:
        return part
    if (new := replace(part)) is not INSIDE:
        return new
    inside = inside | {id(part)}
    if isinstance(part, Mapping) and type(part) is dict:
        changed = {k: _rebuilt(v, replace, inside) for k, v in part.items()}
        return part if all(changed[k] is part[k] for k in part) else changed
    if type(part) in (list, tuple):
        listed = [_rebuilt(one, replace, inside) for one in part]
        return (
            part if all(a is b for a, b in zip(listed, part, strict=True)) else type(part)(listed)
        )
    if isinstance(part, BaseModel) and holds_parts(part):
        fields = {
            name: new
            for name, value in vars(part).items()
            if name in type(part).model_fields
            and _may_hold(value)
            and (new := _rebuilt(value, replace, inside)) is not value
        }
        return part.model_copy(update=fields) if fields else part
    return part


def holds_parts(part: BaseModel) -> bool:
    """Whether a pydantic object can be made of runnables: a runnable, or a langchain component."""
    return isinstance(part, Runnable) or type(part).__module__.startswith("langchain")


def _may_hold(value: Any) -> bool:
    return isinstance(value, (Runnable, BaseModel, Embeddings)) or type(value) in (
        list,
        tuple,
        dict,
    )


def models_in(whole: Any) -> list[BaseChatModel]:
    """The chat models of a runnable, in order; what is inside one is not looked at."""
    found: list[BaseChatModel] = []

    def look(part: Any) -> Any:
        if isinstance(part, BaseChatModel):
            found.append(part)
            return part
        return INSIDE

    rebuilt_with(whole, look)
    return found
