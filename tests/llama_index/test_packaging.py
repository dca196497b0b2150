"""What importing costs and touches, and what is public."""

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import harness_integrations.llama_index as adapter

ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join([str(ROOT / "core"), str(ROOT)])


def _run(program: str, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *flags, "-c", program],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": PATH},
    )  # fmt: skip


def test_every_public_name_is_there_and_documented() -> None:
    assert adapter.__all__ == sorted(adapter.__all__)
    for name in adapter.__all__:
        assert getattr(adapter, name).__doc__, name
    assert set(dir(adapter)) == set(adapter.__all__)
    with pytest.raises(AttributeError, match="nothing_here"):
        _ = adapter.nothing_here
    assert not set(adapter.__all__) & {
        path.stem for path in Path(adapter.__file__).parent.glob("*.py")
    }  # no public name is a module's
    assert "reader" in (adapter.__doc__ or "").splitlines()[0]


def test_the_core_imports_no_llama_index() -> None:  # 43
    done = _run("import harness_core, sys; harness_core.read, harness_core.Trace\n"
                "assert not any(n.startswith('llama_index') for n in sys.modules)")  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_importing_the_adapter_opens_no_socket_and_warns_of_nothing() -> None:  # 43, 45
    names = ", ".join(f"adapter.{name}" for name in adapter.__all__)
    program = f"""
import socket
def closed(*_, **__): raise AssertionError("a socket was opened")
socket.socket.connect = socket.getaddrinfo = closed
import harness_integrations.llama_index as adapter
import harness_integrations.llama_index.testing
{names}
"""
    done = _run(program, "-W", "error::DeprecationWarning")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["", ".testing"])
def test_without_llama_index_the_extra_is_named(module: str) -> None:  # 43
    program = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "llama_index":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
from harness_core.errors import MissingDepError
try:
    import harness_integrations.llama_index{module}
except MissingDepError as error:
    assert isinstance(error, ImportError)
    print(error)
"""
    done = _run(program)
    assert "pip install 'harness-integrations[llama-index]'" in done.stdout, done.stderr


def test_the_adapter_is_typed_and_bounded() -> None:  # 44
    assert (ROOT / "harness_integrations" / "py.typed").is_file()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert extras["llama-index"] == ["llama-index-core>=0.14.16,<0.15"]


def test_errors_are_none_that_refine_swallows() -> None:
    for name in ("OutputCapUnenforceable", "OutputInvalidError", "QuoteError", "RequestRefused"):
        kind = getattr(adapter, name)
        assert issubclass(kind, RuntimeError)
        assert not issubclass(kind, (ValueError, TypeError))


def test_modules_import_alone() -> None:
    for path in Path(adapter.__file__).parent.glob("*.py"):
        import_module(f"harness_integrations.llama_index.{path.stem}")
