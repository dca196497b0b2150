"""Every Python block of the README and the docs runs, in order, one namespace per page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for number, block in enumerate(BLOCK.findall(page.read_text()), start=1):
        exec(compile(block, f"{page.name} block {number}", "exec"), names)  # noqa: S102 - our own docs


def test_the_readme_has_blocks_to_run() -> None:
    assert len(BLOCK.findall((ROOT / "README.md").read_text())) >= 3


def test_the_readme_shows_what_its_first_block_prints(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (ROOT / "README.md").read_text()
    exec(BLOCK.findall(readme)[0], {})  # noqa: S102 - as above
    assert f"```\n{capsys.readouterr().out}```\n" in readme
