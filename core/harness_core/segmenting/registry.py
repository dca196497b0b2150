"""The segmenters by name: the modules of ``methods`` and what was registered beside them."""

import difflib
import inspect
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from harness_core.errors import BadSettingError, UnknownMethodError

_COSTS = ("free", "embedding", "llm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segmenter:
    """A way of cutting documents.

    ``segment`` is a function of (document, spec) that gives ``Chunks`` or texts, or, to ask a
    model, a generator function of one ``SegmentJob`` that returns ``Chunks`` or texts. ``stages``
    are the labels of its requests.
    """

    name: str
    segment: Callable[..., Any]
    cost: str = "free"
    needs_client: bool = False
    stages: tuple[str, ...] = ()
    description: str = ""

    @property
    def asks(self) -> bool:
        """Whether it is a flow of a job rather than a plain function of (document, spec)."""
        return inspect.isgeneratorfunction(self.segment) or inspect.isgeneratorfunction(
            getattr(self.segment, "__call__", None)  # noqa: B004 - an object with a generator in it
        )


_registered: dict[str, Segmenter] = {}


def register_segmenter(
    name: str,
    fn: Callable[..., Any],
    *,
    cost: str = "free",
    needs_client: bool = False,
    stages: Sequence[str] = (),
    description: str = "",
) -> None:
    """Make ``fn`` a segmenter under ``name``; a name that is taken is taken over.

    ``fn`` is a function of (document, spec) that gives ``Chunks`` or a list of texts, or a
    generator function of one ``SegmentJob`` that yields requests and returns either. ``cost`` is
    free, embedding or llm; ``stages`` are the labels of the requests it makes.

    Raises:
        BadSettingError: a blank name, something that cannot be called, or an unknown cost.
    """
    if not name.strip():
        raise BadSettingError(f"the name of a segmenter is a non-blank text, not {name!r}")
    if not callable(fn):
        raise BadSettingError(f"segmenter {name!r} is a function, not {fn!r}")
    if cost not in _COSTS:
        raise BadSettingError(f"cost is one of {', '.join(_COSTS)}, not {cost!r}")
    _registered[name] = Segmenter(
        name=name,
        segment=fn,
        cost=cost,
        needs_client=needs_client,
        stages=tuple(stages),
        description=description,
    )


def list_segmenters() -> list[dict[str, Any]]:
    """Every segmenter by name: its cost, whether it needs a client, its stages, one line."""
    return [
        {
            "name": row.name,
            "cost": row.cost,
            "needs_client": row.needs_client,
            "stages": list(row.stages),
            "description": row.description,
        }
        for row in map(find_segmenter, _names())
    ]


def find_segmenter(name: str) -> Segmenter:
    """The segmenter of that name; a built-in one is loaded on first use.

    Raises:
        UnknownMethodError: nobody registered it.
    """
    return _registered.get(known_segmenter(name)) or _built_in(name)


def known_segmenter(name: str) -> str:
    """``name`` itself when it is a segmenter's, without loading it.

    Raises:
        UnknownMethodError: nobody registered it.
    """
    names = _names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(names)}"
        raise UnknownMethodError(f"there is no segmenter {name!r}{hint}")
    return name


def _names() -> list[str]:
    return sorted({*_shipped(), *_registered})


@cache
def _shipped() -> tuple[str, ...]:
    methods = import_module("harness_core.segmenting.methods")
    return tuple(module.name for module in pkgutil.iter_modules(methods.__path__))


@cache
def _built_in(name: str) -> Segmenter:
    module = import_module(f"harness_core.segmenting.methods.{name}")
    return Segmenter(
        name=name,
        segment=module.segment,
        cost=getattr(module, "COST", "free"),
        needs_client=getattr(module, "NEEDS_CLIENT", False),
        stages=getattr(module, "STAGES", ()),
        description=(module.__doc__ or "").partition("\n")[0],
    )
