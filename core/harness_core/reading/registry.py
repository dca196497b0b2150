"""The readers by name: one module each, found by listing the folder, loaded on first use."""

import difflib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module, util
from typing import TYPE_CHECKING, Any, Protocol

from harness_core.answer import Answer
from harness_core.errors import (
    BadReaderError,
    BadSettingError,
    ReservedNameError,
    UnknownMethodError,
)
from harness_core.flows.types import Flow
from harness_core.stages import declare_stages

if TYPE_CHECKING:
    from harness_core.reading.job import Job

_PACKAGE = "harness_core.readers"


class Reader(Protocol):
    """What a reader is: three parts of a signature, its stage labels, and ``read``.

    ``signature`` says which chunks reach the model, the request pattern and what is carried
    (``all|N+1|none``). Optional: ``expected(job)`` and ``worst(job)`` count requests ahead,
    ``passes(job)`` how often a chunk may be sent, ``inputs(job)`` which models are sent how many
    tokens of chunks in any case, ``embedding_texts(job)`` names what is embedded,
    ``cost`` says the pattern in words and ``use`` when to choose it.
    """

    @property
    def signature(self) -> str: ...
    @property
    def stages(self) -> tuple[str, ...]: ...
    def read(self, job: "Job", /) -> Flow[Answer]: ...


@dataclass(frozen=True, slots=True)
class Registered:
    """A reader under its name, with what its optional parts default to."""

    name: str
    reader: Reader
    description: str

    @property
    def signature(self) -> str:
        """Its three-part signature."""
        return self.reader.signature

    @property
    def reads_all(self) -> bool:
        """Whether every chunk reaches the model."""
        return self.signature.startswith("all|")

    def expected(self, job: "Job") -> int:
        """Requests a read will need."""
        count = getattr(self.reader, "expected", None)
        return int(count(job)) if count is not None else max(len(job.chunks), 1)

    def worst(self, job: "Job") -> int:
        """The most requests a read can need; never below the expected number."""
        count = getattr(self.reader, "worst", None)
        return max(int(count(job)) if count is not None else 0, self.expected(job))

    def passes(self, job: "Job") -> int:
        """How often, at the most, a read sends a chunk: 1 unless the reader says otherwise."""
        count = getattr(self.reader, "passes", None)
        return int(count(job)) if count is not None else 1

    def inputs(self, job: "Job") -> list[tuple[str, int]]:
        """Models and the tokens of chunks each is sent, whatever is found; none for a selection."""
        count = getattr(self.reader, "inputs", None)
        if count is not None:
            return list(count(job))
        return [(job.model, job.tokens)] if self.reads_all else []

    def row(self) -> dict[str, Any]:
        """The reader as a row of ``list_readers``."""
        return {
            "name": self.name,
            "signature": self.signature,
            "cost_calls": getattr(self.reader, "cost", ""),
            "calls": list(self.reader.stages),
            "description": self.description,
            "use": getattr(self.reader, "use", ""),
        }


@dataclass(frozen=True, slots=True)
class _FunctionReader:
    read: "Callable[[Job], Flow[Answer]]"
    signature: str
    stages: tuple[str, ...]
    cost: str


_registered: dict[str, Registered] = {}


def register_reader(
    name: str,
    reader: Any,
    *,
    signature: str | None = None,
    stages: Sequence[str] = (),
    description: str = "",
    cost: str = "",
) -> str:
    """Make a reader known under ``name``; a name that is taken is taken over. Returns the name.

    ``reader`` is an object with ``read``, ``signature`` and ``stages``, or a generator function of
    one ``Job`` that returns an ``Answer``, whose ``signature`` and ``stages`` are then given here.

    Raises:
        ReservedNameError: the name ``auto``.
        BadSettingError: a blank name, no reader, or a signature that is not three parts.
    """
    if name == "auto":
        raise ReservedNameError("'auto' chooses a recipe; give the reader another name")
    if not name.strip():
        raise BadSettingError(f"the name of a reader is a non-blank text, not {name!r}")
    if inspect.isgeneratorfunction(reader):
        reader = _FunctionReader(reader, signature or "custom|N|none", tuple(stages), cost)
    elif inspect.isclass(reader):
        reader = reader()
    if not callable(getattr(reader, "read", None)):
        raise BadSettingError(f"reader {name!r} has no read(job), or is no generator function")
    parts = str(getattr(reader, "signature", "")).split("|")
    if len(parts) != 3 or not all(part.strip() for part in parts):
        raise BadSettingError(
            f"the signature of reader {name!r} is three parts such as all|N+1|none, not "
            f"{getattr(reader, 'signature', None)!r}"
        )
    declare_stages(reader.stages)
    _registered[name] = Registered(name, reader, description or _first_line(reader))
    return name


def registered_as(reader: Any) -> str | None:
    """The name under which a reader, or its class or function, is registered; None for none."""
    for name in reader_names():
        known = find_reader(name).reader
        if reader in (known, type(known), known.read):
            return name
    return None


@contextmanager
def temporarily(reader: Any) -> Iterator[str]:
    """Have a reader registered for a while, under a name of its own."""
    name = getattr(reader, "__name__", type(reader).__name__).lower()
    while name in reader_names():
        name += "_"
    register_reader(name, reader)
    try:
        yield name
    finally:
        del _registered[name]


def find_reader(name: str) -> Registered:
    """The reader of that name.

    Raises:
        UnknownMethodError: nobody registered it.
    """
    return _registered.get(known_reader(name)) or _built_in(name)


def known_reader(name: str) -> str:
    """``name`` itself when it is a reader's, without loading it.

    Raises:
        UnknownMethodError: nobody registered it.
    """
    names = reader_names()
    if name not in names:
        near = difflib.get_close_matches(str(name), names, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(names)}"
        raise UnknownMethodError(f"there is no reader {name!r}{hint}")
    return name


def reader_names() -> list[str]:
    """Every reader's name, sorted."""
    return sorted({*_shipped(), *_registered})


def list_readers() -> list[dict[str, Any]]:
    """One row per reader: name, signature, cost_calls, calls (stage labels), description."""
    return [find_reader(name).row() for name in reader_names()]


def checked_answer(name: str, value: Any) -> Answer:
    """What a reader returned, when it is an answer.

    Raises:
        BadReaderError: it is something else.
    """
    if not isinstance(value, Answer):
        raise BadReaderError(
            f"reader {name!r} returned {type(value).__name__}, not an Answer; end it with "
            "job.answer(...) or new_answer(...)"
        )
    return value


@cache
def _shipped() -> tuple[str, ...]:
    found = util.find_spec(_PACKAGE)
    paths = found.submodule_search_locations if found is not None else None
    return tuple(module.name for module in pkgutil.iter_modules(paths))


@cache
def _built_in(name: str) -> Registered:
    module = import_module(f"{_PACKAGE}.{name}")
    reader: Reader = getattr(module, name.title().replace("_", ""))()
    return Registered(name, reader, (module.__doc__ or "").partition("\n")[0])


def _first_line(reader: Any) -> str:
    return (inspect.getdoc(getattr(reader, "read", reader)) or "").partition("\n")[0]


def reader_signature(reader: Any) -> str:
    """The signature of a reader, by name or spec; an ensemble spec's names its members too.

    Raises:
        UnknownMethodError: nobody registered it.
    """
    if isinstance(reader, str):
        return find_reader(reader).signature
    signature = find_reader(reader.reader).signature
    if reader.reader != "ensemble":
        return signature
    members = sorted(set(reader.members or ENSEMBLE_MEMBERS))
    return f"{signature}{{{'+'.join(members)}}}"


ENSEMBLE_MEMBERS = ("retrieve", "map_reduce")
"""The members of an ensemble that names none."""
