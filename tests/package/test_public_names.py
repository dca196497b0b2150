"""The package as a user imports it."""

import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import harness_core
import harness_integrations


def test_every_public_name_loads() -> None:
    assert [
        name for name in harness_core.__all__ if getattr(harness_core, name, None) is None
    ] == []


def test_names_are_listed_once_and_sorted() -> None:
    assert harness_core.__all__ == sorted(set(harness_core.__all__))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = harness_core.no_such_name


def test_no_public_name_is_also_a_module() -> None:
    modules = {name.rpartition(".")[2] for name in _top_level_modules()}
    assert modules & set(harness_core.__all__) == set()


def test_a_name_loads_again_after_its_module_was_imported() -> None:
    import_module("harness_core.pipeline")
    assert callable(harness_core.read)
    assert callable(harness_core.read)


def test_every_error_is_exported_with_its_code() -> None:
    from harness_core import errors

    assert set(errors.__all__) <= set(harness_core.__all__)
    assert errors.ReplayMissError.code == "replay_miss"
    assert errors.AuthError.code == "auth_error"
    assert errors.RequestRefused.code == "budget_refused"


def test_every_error_and_warning_stands_in_the_tree_and_is_used() -> None:
    from harness_core import errors

    tree = set(re.findall(r"\b\w+(?:Error|Refused|Failed)\b", errors.__doc__ or ""))
    named = [name for name in errors.__all__ if not name.endswith("Warning")]
    assert tree - {"ImportError", "ValueError", "RuntimeError", "FileNotFoundError"} == set(named)
    bases = ("HarnessError", "HarnessWarning")
    source = "\n".join(
        path.read_text("utf-8")
        for package in (harness_core, harness_integrations)
        for path in Path(str(package.__file__)).parent.rglob("*.py")
        if path.name not in ("errors.py", "__init__.py")
    )
    uses = Counter(re.findall(r"\w+", source))  # importing it is the first, raising it the second
    assert [name for name in errors.__all__ if name not in bases and uses[name] < 2] == []


def test_a_refusal_is_no_value_type_or_lookup_error() -> None:
    for error in (
        harness_core.RequestRefused,
        harness_core.ReplayMissError,
        harness_core.ReplayExhaustedError,
    ):
        assert issubclass(error, RuntimeError)
        assert not issubclass(error, (ValueError, TypeError, LookupError))


HEAVY = ("numpy", "tiktoken", "genai_prices", "jsonschema", "openai", "langchain_core",
         "llama_index", "pypdfium2", "rapidfuzz", "starlette", "ray")  # fmt: skip


def test_importing_the_package_loads_nothing_heavy_and_opens_nothing() -> None:
    code = f"""
import builtins, io, socket, sys
import pydantic, regex, orjson
package = None
def refuse(*args, **kwargs): raise AssertionError("a socket was opened")
socket.socket.connect = refuse
opened = []
real = io.open
def watching(file, *args, **kwargs):
    opened.append(str(file))
    return real(file, *args, **kwargs)
builtins.open = watching
import harness_core
from harness_core import Governor, Trace, answer_document, read, segment, ReplayClient
loaded = [name for name in {HEAVY!r} if name in sys.modules]
assert not loaded, loaded
assert not opened, opened
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _top_level_modules() -> list[str]:
    return [module.name for module in walk_packages(harness_core.__path__, "harness_core.")
            if module.name.count(".") == 1]  # fmt: skip
