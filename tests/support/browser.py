"""A headless Chromium for the tests of pages; they are skipped, with the reason, where it is not.

browser = pytest.fixture(scope="module")(chromium)
"""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--no-first-run"]  # fmt: skip


def chromium() -> Iterator["Browser"]:
    """A browser, closed afterwards."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=program, args=FLAGS)
        yield opened
        opened.close()


def faults_by_axe(page: "Page") -> list[str]:
    """What axe finds wrong with a page; the page's policy is to be bypassed (``bypass_csp``)."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is missing")
    return [one["id"] for one in axe.Axe().run(page).response["violations"]]
