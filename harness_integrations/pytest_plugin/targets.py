"""What a test wants recorded: the name it is under, whether it is made first, what it is."""

import importlib
import inspect
from functools import partial
from typing import Any

from harness_core.errors import BadSettingError


def owner_of(target: str) -> tuple[Any, str]:
    """The module or class that ``package.module.name`` is in, and its name there.

    Raises:
        BadSettingError: there is no such name.
    """
    path, _, name = target.rpartition(".")
    module, rest = path, list[str]()
    while module:
        try:
            owner: Any = importlib.import_module(module)
            break
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise  # the module is there, and something that it imports is not
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
    else:
        raise BadSettingError(f"{target!r} names nothing that can be imported")
    for part in rest:
        owner = getattr(owner, part, None)
    if not hasattr(owner, name):
        raise BadSettingError(f"{target!r}: there is no {name!r} in {path}")
    return owner, name


def makes(real: Any) -> bool:
    """Whether something is a function that makes the real object."""
    return inspect.isroutine(real) or isinstance(real, (type, partial))


def framework_of(real: Any) -> str | None:
    """``langchain`` or ``llama_index``; None for anything else, a function too."""
    modules = [one.__module__ for one in type(real).__mro__] if real is not None else []
    if makes(real):
        return None
    names = (("langchain", "langchain"), ("llama_index", "llama_index"))
    return next((n for n, start in names if any(m.startswith(start) for m in modules)), None)


_KINDS: dict[str, tuple[tuple[str, str], ...]] = {
    "langchain": (
        ("BaseChatModel", "chat_model"), ("Embeddings", "embeddings"), ("Runnable", "runnable"),
    ),
    "llama_index": (("LLM", "llm"), ("BaseEmbedding", "embeddings"), ("object", "engine")),
}  # fmt: skip


def kind_of(real: Any) -> str:
    """The method of ``HarnessRecording`` that wraps it.

    Raises:
        BadSettingError: it sends no requests that can be recorded.
    """
    names: set[str] = {one.__name__ for one in type(real).__mro__}
    framework = framework_of(real)
    bare = "client" if hasattr(real, "send") else None
    for name, kind in (*_KINDS.get(framework or "", ()), ("object", bare)):
        if name in names and kind is not None:
            return kind
    raise BadSettingError(f"{type(real).__name__} sends no requests that can be recorded")
