"""Pages that are generated are those of today's code."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
generated = runpy.run_path(str(ROOT / "docs" / "settings.py"), run_name="settings")


def test_the_settings_page_is_that_of_the_settings_table() -> None:
    assert (ROOT / "docs" / "settings.md").read_text() == generated["settings_page"]()


def test_the_readme_lists_the_readers_of_the_registry() -> None:
    readme = (ROOT / "README.md").read_text()
    assert readme == generated["with_readers"](readme)


def test_every_dependency_has_a_line() -> None:
    import re
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"]]
    for name, requirements in extras.items():
        if name not in ("test", "all"):
            wanted += [one for one in requirements if not one.startswith("harness-integrations")]
    page = (ROOT / "docs" / "dependencies.md").read_text()
    missing = [one for one in wanted if re.split(r"[<>=\[]", one)[0] not in page]
    assert missing == []


def test_every_requirement_has_a_lower_bound() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"]]
    for requirements in project["optional-dependencies"].values():
        listed += [one for one in requirements if not one.startswith("harness-integrations")]
    assert [one for one in listed if ">=" not in one] == []


def test_the_constraints_name_no_address() -> None:
    text = (ROOT / "constraints.txt").read_text()
    assert "://" not in text
    assert " @ " not in text
