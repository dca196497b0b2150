"""Recipes: an ingest, a segment and a read spec under one name, and how they are overridden."""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harness_core.documents.spec import IngestSpec
from harness_core.errors import (
    AmbiguousNameWarning,
    BadOverrideError,
    BadRecipeError,
    HarnessWarning,
    UnknownOverrideError,
    holding_warnings,
    warn,
)
from harness_core.reading.registry import reader_names
from harness_core.reading.spec import ReadSpec
from harness_core.segmenting.spec import SegmentSpec

AUTO = "auto"
_SPECS: Mapping[str, Any] = {"ingest": IngestSpec, "segment": SegmentSpec, "read": ReadSpec}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a document is ingested, cut and read. Recipes name no model: the client's reads.

    Each part is a spec, or what its ``of`` makes one of: a mapping, a name, None.
    """

    name: str = ""
    ingest: IngestSpec = field(default_factory=IngestSpec)
    segment: SegmentSpec = field(default_factory=SegmentSpec)
    read: ReadSpec = field(default_factory=ReadSpec)

    def __post_init__(self) -> None:
        for axis, spec in _SPECS.items():
            object.__setattr__(self, axis, spec.of(getattr(self, axis)))
        if not self.name:
            object.__setattr__(self, "name", f"{self.segment.method}+{self.read.reader}")


_BUILT_IN: Mapping[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "fast": ({}, {"method": "paragraph", "max_tokens": 4000}, {"reader": "stuff"}),
    "precise": (
        {},
        {"method": "sentence", "max_tokens": 600, "overlap_tokens": 60},
        {"reader": "skim", "cite": True},
    ),
    "needle": (
        {},
        {"method": "semantic", "max_tokens": 500, "overlap_tokens": 50},
        {"reader": "retrieve", "top_k": 8, "cite": True},
    ),
    "thorough": (
        {},
        {"method": "paragraph", "max_tokens": 1200, "overlap_tokens": 120},
        {"reader": "map_reduce"},
    ),
    "survey": (
        {},
        {"method": "structural", "max_tokens": 1500},
        {"reader": "hierarchical", "fan_in": 5},
    ),
    "narrative": ({}, {"method": "paragraph", "max_tokens": 1500}, {"reader": "refine"}),
    "scanned": (
        {"clean": "scan", "ocr": "auto"},
        {"method": "page", "max_tokens": 2000},
        {"reader": "rerank", "rerank_candidates": 25, "top_k": 6},
    ),
    "research": (
        {"clean": "academic"},
        {"method": "structural", "max_tokens": 900, "overlap_tokens": 90},
        {"reader": "iterative", "top_k": 5, "max_rounds": 4, "cite": True},
    ),
    "consensus": (
        {},
        {"method": "recursive", "max_tokens": 1000, "overlap_tokens": 100},
        {"reader": "ensemble", "members": ("retrieve", "map_reduce", "refine")},
    ),
    "legacy": (
        {"clean": "legacy"},
        {"method": "paragraph", "max_tokens": 3000},
        {"reader": "map_reduce"},
    ),
}
_ABOUT: Mapping[str, str] = {
    "fast": "the whole document in one request",
    "precise": "copy out the passages that bear on the question, then answer from them",
    "needle": "find the few chunks that hold one fact",
    "thorough": "ask every chunk, then merge the answers",
    "survey": "summaries of summaries, section by section",
    "narrative": "one draft, revised chunk after chunk",
    "scanned": "pages scored by the model, the best ones read",
    "research": "rounds of looking for what is still missing",
    "consensus": "three ways of reading, compared",
    "legacy": "large chunks of text without its numbers, captions and links, merged",
}


def get_recipe(name: str) -> Recipe:
    """The built-in recipe of that name.

    Raises:
        BadRecipeError: there is none.
    """
    if name not in _BUILT_IN:
        why = (
            "'auto' is a choice between recipes that answer_document makes, not a recipe"
            if name == AUTO
            else f"there is no recipe {name!r}; there are {', '.join(_BUILT_IN)}"
        )
        raise BadRecipeError(why)
    ingest, segment, read = _BUILT_IN[name]
    return _made({"name": name, "ingest": ingest, "segment": segment, "read": read})


def list_recipes() -> list[dict[str, Any]]:
    """One row per recipe: name, segmenter, chunk size, reader, cite, what it is for."""
    rows = []
    for name, (_, segment, read) in _BUILT_IN.items():
        rows.append({
            "name": name,
            "segmenter": segment["method"],
            "max_tokens": segment["max_tokens"],
            "overlap_tokens": segment.get("overlap_tokens", 0),
            "reader": read["reader"],
            "cite": read.get("cite", False),
            "description": _ABOUT[name],
        })  # fmt: skip
    return rows


def as_recipe(recipe: Any) -> Recipe:
    """A recipe from a recipe, the name of one or of a reader, or a mapping of its three specs.

    Raises:
        BadRecipeError: anything else, and ``auto``, which is no recipe.
    """
    if isinstance(recipe, Recipe):
        return recipe
    if isinstance(recipe, str):
        if recipe in _BUILT_IN:
            if recipe in reader_names():
                warn(AmbiguousNameWarning(
                    f"{recipe!r} is a recipe and a reader; the recipe is used"
                ))  # fmt: skip
            return get_recipe(recipe)
        if recipe in reader_names():
            return Recipe(read=ReadSpec(recipe))
        return get_recipe(recipe)
    if isinstance(recipe, ReadSpec):
        return Recipe(read=recipe)
    if isinstance(recipe, Mapping) and {"ingest", "segment", "read"} & recipe.keys():
        return _made(recipe)
    raise BadRecipeError(
        "a recipe is a Recipe, the name of one or of a reader, or a mapping with ingest, segment "
        f"or read, not {recipe!r}"
    )


def _made(parts: Mapping[str, Any]) -> Recipe:
    unknown = sorted(parts.keys() - {"name", *_SPECS})
    if unknown:
        raise BadRecipeError(f"a recipe has name, ingest, segment and read, not {unknown[0]!r}")
    return Recipe(**parts)


def overridden(recipe: Recipe, overrides: Mapping[str, Any]) -> Recipe:
    """The recipe with flat overrides, each given to the spec that owns its name.

    Raises:
        UnknownOverrideError: a name that no spec has; it lists them.
        BadOverrideError: None for a setting whose default is something.
    """
    axes: dict[str, dict[str, Any]] = {"ingest": {}, "segment": {}, "read": {}}
    for name, value in overrides.items():
        owners = [axis for axis, names in _OWNED.items() if name in names]
        if not owners:
            known = ", ".join(sorted({n for names in _OWNED.values() for n in names}))
            raise UnknownOverrideError(f"{name!r} is no setting of a recipe; they are {known}")
        for axis in owners:
            if value is None and _SPECS[axis].model_fields[name].default is not None:
                raise BadOverrideError(
                    f"{name}=None says nothing: the setting has no such value; leave it out"
                )
            axes[axis][name] = value
    changed = {
        axis: _rebuilt(getattr(recipe, axis), values) for axis, values in axes.items() if values
    }
    return replace(recipe, **changed) if changed else recipe


_OWNED: Mapping[str, frozenset[str]] = {
    axis: frozenset(spec.model_fields) for axis, spec in _SPECS.items()
}


def _rebuilt(spec: Any, changes: Mapping[str, Any]) -> Any:
    """The spec made anew, so that clamps and warnings apply to what was changed."""
    if isinstance(spec, ReadSpec):
        return spec.having(**changes)
    kept = {name: getattr(spec, name) for name in spec.model_fields_set}
    return type(spec)(**{**kept, **changes})


def candidates(
    names: tuple[Any, ...], overrides: Mapping[str, Any]
) -> tuple[tuple[Recipe, ...], dict[str, list[HarnessWarning]]]:
    """The recipes that may be used, and what is only worth saying once one of them is chosen.

    What all of them warn about is said now, before the document is touched.
    """
    if len(names) == 1:
        return (overridden(as_recipe(names[0]), overrides),), {}
    recipes: list[Recipe] = []
    said: list[list[HarnessWarning]] = []
    for name in names:
        with holding_warnings() as held:
            recipes.append(overridden(as_recipe(name), overrides))
        said.append(held)
    texts = [{str(warning) for warning in held} for held in said]
    common = set.intersection(*texts)
    for warning in said[0]:
        if str(warning) in common:
            warn(warning)
    late = {
        recipe.name: [warning for warning in held if str(warning) not in common]
        for recipe, held in zip(recipes, said, strict=True)
    }
    return tuple(recipes), late


def each_recipe(recipes: Any) -> Iterable[Any]:
    """Several recipes, or the one that was given alone."""
    if isinstance(recipes, (Recipe, str, ReadSpec, Mapping)):
        return [recipes]
    return list(recipes) if inspect.isgenerator(recipes) or recipes else []


def recorded_recipe(steps: Iterable[Any]) -> Recipe:
    """The recipe of a recorded run, as its last ingest, segment and preflight steps tell it.

    Raises:
        BadRecipeError: the recording holds no read.
    """
    found: dict[str, Any] = {}
    name = ""
    for step in steps:
        if step.label in ("ingest", "segment", "preflight"):
            found[step.label] = (step.detail or {}).get("settings", {})
            name = step.recipe or name
    if "preflight" not in found:
        raise BadRecipeError(
            "the recording holds no read of a document; there is nothing to replay"
        )
    return Recipe(
        name=name,
        ingest=IngestSpec.of(found.get("ingest") or None),
        segment=SegmentSpec.of(found.get("segment") or {}),
        read=ReadSpec.of(found["preflight"]),
    )
