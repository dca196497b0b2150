"""A test run that does not use the plugin pays nothing for it."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_loading_the_plugin_loads_nothing_but_pytest_and_the_standard_library(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_app.py").write_text(
        "import sys\n"
        "def test_it(request):\n"
        "    loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "    assert not loaded & {'harness_core', 'langchain_core', 'llama_index', 'numpy',"
        " 'pydantic', 'orjson', 'openai'}, loaded\n"
        "    assert 'harness_integrations.pytest_plugin' in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "harness_integrations.pytest_plugin", "."],
        cwd=tmp_path,
        env={
            "PYTHONPATH": f"{ROOT / 'core'}:{ROOT}",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_installed_package_brings_the_plugin() -> None:
    facts = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (named,) = facts["project"]["entry-points"]["pytest11"].values()
    assert hasattr(import_module(named), "harness_recording")
