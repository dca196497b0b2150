"""The legs of a comparison: which recipes run, under which names, and which are the same."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness_core.calls.branches import Branch
from harness_core.documents.types import Chunks, Document
from harness_core.errors import (
    DuplicateRecipeWarning,
    HarnessWarning,
    NoRecipesError,
    recording_warnings,
    warn,
)
from harness_core.recipes import Recipe, as_recipe, each_recipe, overridden


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A recipe that is to run: its name in the comparison, and what its settings warned about."""

    name: str
    recipe: Recipe
    said: tuple[HarnessWarning, ...]


@dataclass(slots=True, kw_only=True)
class Leg:
    """One recipe on its way: its part of the trace, and what it has made so far.

    ``cut`` is the last step of its segmentation.
    """

    entry: Entry
    branch: Branch
    document: Document | None = None
    chunks: Chunks | None = None
    cut: int = 0


def entries(
    recipes: Any, overrides: Mapping[str, Any], *, allow_duplicates: bool
) -> tuple[Entry, ...]:
    """The recipes that will run, each under a name of its own.

    Raises:
        NoRecipesError: there are none.
        BadRecipeError, UnknownOverrideError, BadOverrideError: see there.
    """
    made = [_made(recipe, overrides) for recipe in each_recipe(recipes)]
    if not made:
        raise NoRecipesError("a comparison needs at least one recipe")
    kept = made if allow_duplicates else list(_distinct(made))
    names = unique(recipe.name for recipe, _ in kept)
    return tuple(
        Entry(name=name, recipe=recipe, said=said)
        for name, (recipe, said) in zip(names, kept, strict=True)
    )


Made = tuple[Recipe, tuple[HarnessWarning, ...]]


def _made(recipe: Any, overrides: Mapping[str, Any]) -> Made:
    with recording_warnings() as said:
        made = overridden(as_recipe(recipe), overrides)
    return made, tuple(said)


def _distinct(made: Iterable[Made]) -> Iterable[Made]:
    known: list[Recipe] = []
    for recipe, said in made:
        same = next((one for one in known if _alike(one, recipe)), None)
        if same is None:
            known.append(recipe)
            yield recipe, said
        else:
            warn(DuplicateRecipeWarning(
                f"recipe {recipe.name!r} is {same.name!r} in every setting and is not run again; "
                "allow_duplicates=True runs both"
            ))  # fmt: skip


def _alike(one: Recipe, other: Recipe) -> bool:
    return (one.ingest, one.segment, one.read) == (other.ingest, other.segment, other.read)


def unique(names: Iterable[str]) -> list[str]:
    """The names with ``#1``, ``#2`` ... after those that came before."""
    given = list(names)
    taken: set[str] = set()
    found = []
    for name in given:
        number, one = 0, name
        while one in taken or (number and one in given):
            number += 1
            one = f"{name}#{number}"
        taken.add(one)
        found.append(one)
    return found
