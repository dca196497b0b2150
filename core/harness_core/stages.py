"""The stage labels that requests carry, and effort by stage.

Every reader and segmenter declares the stems of its labels, so that a misspelt effort name is an
error instead of a setting that reaches nothing.
"""

from collections.abc import Iterable, Mapping

from harness_core.errors import UnknownEffortKeyError

_declared: set[str] = {
    "segment.context", "segment.proposition", "stuff.answer", "map.answer", "reduce",
    "refine.draft", "refine.revise", "skim.extract", "skim.consolidate", "skim.answer",
    "retrieve.answer", "rerank.score", "rerank.answer", "hier.summarise", "hier.answer",
    "iterative.step", "iterative.final", "ensemble.adjudicate", "preview.plan", "preview.skim",
    "preview.answer", "screen.decide", "extract.chunk", "extract.resolve",
}  # fmt: skip


def declare_stages(stems: Iterable[str]) -> None:
    """Make label stems known; built-in ones are known from the start."""
    _declared.update(stems)


def declared_stages() -> list[str]:
    """All known stems, sorted."""
    return sorted(_declared)


def check_effort(effort: str | Mapping[str, str] | None) -> None:
    """Check that every name of an effort mapping reaches a declared stage.

    Raises:
        UnknownEffortKeyError: a name that covers no stem and lies under none; it lists the stems.
    """
    if not isinstance(effort, Mapping):
        return
    for name in effort:
        if name and name != "default" and not _reaches(name):
            raise UnknownEffortKeyError(
                f"effort names the stage {name!r}, which no request carries; the stages are "
                f"{', '.join(declared_stages())}"
            )


def effort_for(effort: str | Mapping[str, str] | None, label: str) -> str | None:
    """The effort of a request: the longest name that covers its label, else ``default``."""
    if effort is None or isinstance(effort, str):
        return effort
    covering = [name for name in effort if name and _covers(name, label)]
    if covering:
        return effort[max(covering, key=len)]
    return effort.get("default", effort.get(""))


def _covers(name: str, label: str) -> bool:
    return label == name or label.startswith(f"{name}.")


def _reaches(name: str) -> bool:
    return any(_covers(name, stem) or _covers(stem, name) for stem in _declared)
