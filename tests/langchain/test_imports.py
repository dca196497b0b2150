"""Public names are literal, lazy and complete, and say what is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

import harness_integrations.langchain as adapter
from harness_core import MissingDepError

ROOT = Path(__file__).parents[2]


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, check=True, cwd=ROOT, env={"PYTHONPATH": f"core:{ROOT}"},
    )  # fmt: skip
    return done.stdout.strip()


def test_every_public_name_is_there_and_sorted() -> None:  # 49
    assert adapter.__all__ == sorted(adapter.__all__)
    assert set(adapter.__all__) == set(adapter._HOMES)
    for name in adapter.__all__:
        assert getattr(adapter, name).__name__ == name
    assert dir(adapter) == adapter.__all__
    with pytest.raises(AttributeError, match="no attribute 'Missing'"):
        _ = adapter.Missing


def test_importing_the_packages_imports_no_framework() -> None:  # 45
    code = (
        "import sys, harness_core, harness_integrations.langchain;"
        "print([m for m in sys.modules if m.startswith(('langchain', 'langgraph', 'openai'))])"
    )
    assert run(code) == "[]"


def test_what_needs_langchain_core_alone_imports_no_more() -> None:  # 44, 45
    code = (
        "import sys\n"
        "from harness_integrations.langchain import *\n"
        "import harness_integrations.langchain.testing\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('langchain', 'langgraph', 'openai',"
        " 'langchain_openai', 'langchain_classic')])"
    )
    assert run(code) == "[]"


@pytest.mark.parametrize(
    ("missing", "code", "extra"),
    [
        ("langchain_core", "harness_integrations.langchain.GovernedChatModel", "langchain"),
        ("langchain_core", "import harness_integrations.langchain.testing", "langchain"),
        ("langchain", "import harness_integrations.langchain.middleware", "langchain-agents"),
    ],
)
def test_a_missing_framework_names_the_extra(missing: str, code: str, extra: str) -> None:  # 45
    program = (
        f"import sys, harness_integrations.langchain\nsys.modules[{missing!r}] = None\n"
        f"try:\n    {code}\nexcept ImportError as error:\n    print(type(error).__name__, error)"
    )
    said = run(program)
    assert said.startswith(MissingDepError.__name__)
    assert f"harness-integrations[{extra}]" in said


def test_the_package_is_typed() -> None:  # 46
    assert (ROOT / "harness_integrations" / "py.typed").exists()


def test_the_namespace_is_the_modules_own() -> None:  # 49
    assert adapter.GovernedChatModel.get_lc_namespace() == [
        "harness_integrations",
        "langchain",
        "models",
    ]
    assert "get_lc_namespace" not in vars(adapter.GovernedChatModel)
