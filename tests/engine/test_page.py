"""The page of the service in a real browser: from a file to a passage."""

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from harness_core import ExtractiveClient, example_document
from harness_core.collections import Collections, in_this_process
from harness_integrations.engine.service.app import ServiceApp
from harness_integrations.engine.service.serving import running
from tests.engine.conftest import QUICK

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.service
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--no-first-run"]  # fmt: skip
HOSTILE = "<img src=x onerror=alert(1)> The harbour bridge was painted green in 1931."


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@contextmanager
def _served(folder: Path) -> Iterator[tuple[str, str]]:
    engine = Collections(folder / "engine.db", client=ExtractiveClient(), ingestion=in_this_process)
    with closing(engine):
        engine.create_namespace("acme")
        engine.namespace("acme").create_collection("reports")
        with running(ServiceApp(engine, QUICK)) as url:
            yield url, engine.keys.create("cluster").secret


def _opened(
    browser: "Browser", url: str, key: str, width: int, **more: Any
) -> tuple["Page", list[str]]:
    page = browser.new_page(viewport={"width": width, "height": 900}, **more)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    own = (url, "data:")
    page.on("request", lambda one: None if one.url.startswith(own) else wrong.append(one.url))
    page.goto(f"{url}/#key={key}")
    page.wait_for_selector("#work:not([hidden])")
    return page, wrong


@pytest.mark.parametrize("width", [1280, 390])
def test_from_a_file_to_a_passage(browser: "Browser", tmp_path: Path, width: int) -> None:
    (tmp_path / "hostile.md").write_text(HOSTILE)
    with _served(tmp_path) as (url, key):
        page, wrong = _opened(browser, url, key, width)
        assert key not in page.url
        page.set_input_files(
            "#upload", [str(example_document("pdf")), str(tmp_path / "hostile.md")]
        )
        page.locator(".status.ready").nth(1).wait_for()
        assert page.text_content("#state") == "2 of 2 ready"

        page.fill("#query", "How big was the deficit of the pension scheme?")
        page.click("#send")
        page.wait_for_selector(".answer .cite")
        page.click(".answer .cite")
        page.wait_for_selector("#passage mark")
        assert "page" in (page.text_content("#passage-place") or "")
        marked, shown = page.text_content("#passage mark"), page.text_content("#text")
        assert marked is not None
        assert "pension" in marked
        assert marked in (shown or "")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.keyboard.press("Escape")

        page.fill("#query", "When was the harbour bridge painted green?")
        page.keyboard.press("Enter")
        page.locator(".answer").nth(1).wait_for()
        page.click(".answer:first-child .cite")
        page.wait_for_selector("#passage[open]")
        assert HOSTILE.split("> ")[1] in (page.text_content("#passage mark") or "")
        assert page.query_selector("main img, dialog img") is None
        page.click("#close")

        page.click("[aria-label='Delete hostile.md']")
        page.locator("[aria-label='Delete hostile.md']").wait_for(state="detached")
        assert wrong == []
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_passes_axe(browser: "Browser", tmp_path: Path, width: int, scheme: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is missing")
    (tmp_path / "bridge.md").write_text("The harbour bridge was painted green in 1931.")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    with _served(tmp_path) as (url, key):
        # the page's policy would keep axe itself out
        page, _ = _opened(browser, url, key, width, color_scheme=scheme, bypass_csp=True)
        page.set_input_files("#upload", [tmp_path / "bridge.md", tmp_path / "broken.pdf"])
        page.wait_for_selector(".status.ready")
        page.wait_for_selector(".status.failed")
        page.fill("#query", "When was the harbour bridge painted green?")
        page.click("#send")
        page.wait_for_selector(".answer .cite")
        for opening in (None, ".answer .cite"):
            if opening:
                page.click(opening)
                page.wait_for_selector("#passage[open]")
            found = axe.Axe().run(page)
            assert [one["id"] for one in found.response["violations"]] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.close()


def test_a_wrong_key_is_said(browser: "Browser", tmp_path: Path) -> None:
    with _served(tmp_path) as (url, key):
        page = browser.new_page()
        page.goto(url)
        page.fill("#key", "wrong")
        page.click("#enter button")
        page.wait_for_selector("#key:invalid")
        page.fill("#key", key)
        page.click("#enter button")
        page.wait_for_selector("#work:not([hidden])")
        page.close()


def test_the_page_comes_with_a_strict_policy(tmp_path: Path) -> None:
    with _served(tmp_path) as (url, _):
        for part in ("/", "/page/page.js", "/page/page.css"):
            response = httpx.get(url + part)
            policy = response.headers["content-security-policy"]
            assert response.status_code == 200
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "http" not in policy
        page = httpx.get(url).text
        assert "<style" not in page
        assert " onclick" not in page
        assert httpx.get(url + "/page/..%2Fapp.py").status_code == 404
        assert httpx.get(url + "/page/app.py").status_code == 404
