"""The cleaners there are, and the presets made of them."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias

from harness_core.errors import BadSettingError, UnknownMethodError

CleanFn: TypeAlias = Callable[[str, Mapping[str, Any]], str]
Stage = Literal["early", "late"]
Scope = Literal["block", "document"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaner:
    """One rule. ``fn`` is a function, or where a built-in one lives."""

    name: str
    fn: CleanFn | str
    stage: Stage
    description: str
    scope: Scope = "block"
    default_on: bool = False
    stamp: int = 0

    def load(self) -> CleanFn:
        """The function."""
        if not isinstance(self.fn, str):
            return self.fn
        module, _, name = self.fn.partition(":")
        loaded: CleanFn = getattr(import_module(f"harness_core.documents.cleaning.{module}"), name)
        return loaded


PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    "none": (),
    "minimal": ("control_chars", "collapse_whitespace"),
    "standard": (
        "page_numbers", "hyphenation", "control_chars", "ligatures", "collapse_whitespace",
    ),
    "academic": (
        "page_numbers", "captions", "references", "hyphenation", "control_chars", "ligatures",
        "collapse_whitespace",
    ),
    "scan": (
        "page_numbers", "headers_footers", "hyphenation", "control_chars", "ligatures",
        "collapse_whitespace",
    ),
    "legacy": (
        "page_numbers", "captions", "urls", "emails", "references", "remove_numbers",
        "collapse_whitespace",
    ),
}  # fmt: skip


def _early(name: str, fn: str, description: str, **more: Any) -> Cleaner:
    return Cleaner(name=name, fn=fn, stage="early", description=description, **more)


def _late(name: str, description: str, **more: Any) -> Cleaner:
    return Cleaner(name=name, fn=f"letters:{name}", stage="late", description=description, **more)


_BUILT_IN: Final[Mapping[str, Cleaner]] = {
    cleaner.name: cleaner
    for cleaner in (
        _early("page_numbers", "lines:page_numbers", "Blanks lines that are only a page number.",
               default_on=True),
        _early("captions", "lines:captions", "Blanks captions of figures and tables."),
        _early("urls", "lines:urls", "Removes web addresses."),
        _early("emails", "lines:emails", "Removes mail addresses."),
        _early("references", "lines:references", "Cuts the list of references off.",
               scope="document"),
        _early("hyphenation", "hyphens:hyphenation", "Rejoins words divided at a line end.",
               default_on=True),
        _early("headers_footers", "heads:headers_footers", "Removes running heads and feet.",
               scope="document"),
        _late("collapse_whitespace", "Folds runs of blanks and blank lines.", default_on=True),
        _late("control_chars", "Removes invisible and control characters.", default_on=True),
        _late("ligatures", "Expands ligatures, straightens quotes.", default_on=True),
        _late("remove_numbers", "Replaces digits by a space."),
        _late("remove_punctuation", "Replaces punctuation by a space."),
        _late("ascii_only", "Transliterates to ASCII."),
        _late("lowercase", "Lower-cases."),
    )
}  # fmt: skip

_registered: dict[str, Cleaner] = {}
_stamps = itertools.count(1)


def register_cleaner(
    name: str,
    fn: CleanFn,
    *,
    stage: Stage = "early",
    description: str = "",
    default_on: bool = False,
    scope: Scope = "block",
) -> None:
    """Add a cleaner, or replace the one of that name.

    ``fn(text, opts)`` returns the cleaned text; ``opts`` holds the fields of the spec and its
    ``cleaner_opts``. A document-scoped cleaner is given the whole text, once.

    Raises:
        BadSettingError: a blank name, an unknown stage or scope, or no function.
    """
    if not name.strip() or not callable(fn):
        raise BadSettingError("a cleaner is a name and a function")
    if stage not in ("early", "late") or scope not in ("block", "document"):
        raise BadSettingError("a cleaner is early or late, and of scope block or document")
    _registered[name] = Cleaner(
        name=name,
        fn=fn,
        stage=stage,
        description=description,
        default_on=default_on,
        scope=scope,
        stamp=next(_stamps),
    )


def list_cleaners() -> list[dict[str, Any]]:
    """name, stage, scope, default_on and description of every cleaner; early first, by name."""
    rows = sorted(_all().values(), key=lambda cleaner: (cleaner.stage, cleaner.name))
    return [
        {
            "name": cleaner.name,
            "stage": cleaner.stage,
            "scope": cleaner.scope,
            "default_on": cleaner.default_on,
            "description": cleaner.description,
        }
        for cleaner in rows
    ]


def preset_steps(preset: str) -> tuple[str, ...]:
    """The cleaners of a preset.

    Raises:
        UnknownMethodError: no preset of that name.
    """
    if preset not in PRESETS:
        raise UnknownMethodError(
            f"no cleaning preset {preset!r}; the presets are {', '.join(PRESETS)} "
            "(cleaners are given as a list of names)"
        )
    return PRESETS[preset]


def ordered_cleaners(steps: tuple[str, ...] | None) -> list[Cleaner]:
    """The cleaners of ``steps`` (None: those on by default), early before late.

    Raises:
        UnknownMethodError: a name nobody registered.
    """
    known = _all()
    if steps is None:
        steps = tuple(name for name, cleaner in known.items() if cleaner.default_on)
    wanted = [step for step in steps if step.strip()]
    if unknown := [step for step in wanted if step not in known]:
        raise UnknownMethodError(
            f"no cleaner {', '.join(map(repr, unknown))}; there are {', '.join(sorted(known))}"
        )
    return sorted((known[step] for step in wanted), key=lambda cleaner: cleaner.stage)


def _all() -> dict[str, Cleaner]:
    return {**_BUILT_IN, **_registered}
