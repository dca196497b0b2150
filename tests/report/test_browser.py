"""The page of a trace in a real browser."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness_core import ExtractiveClient, Trace, answer_document, example_document
from harness_core.report import trace_page
from tests.support.browser import chromium, faults_by_axe
from tests.support.hostile_trace import hostile_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.service
browser = pytest.fixture(scope="module")(chromium)
QUESTION = "How big was the deficit of the pension scheme?"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    whole = Trace()
    found = answer_document(
        example_document("pdf"), QUESTION, "needle", client=ExtractiveClient(), trace=whole,
        reader="skim", max_tokens=300, verify=True,
    )  # fmt: skip
    hostile, answer = hostile_run()
    made = {
        "whole": trace_page(whole, answer=found.to_dict()),
        "hostile": trace_page(hostile, answer=answer),
        "empty": trace_page(Trace()),
    }
    folder = tmp_path_factory.mktemp("pages")
    for name, page in made.items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


def opened(browser: "Browser", file: Path, width: int = 1280, **more: Any) -> "Page":
    page = browser.new_page(viewport={"width": width, "height": 900}, **more)
    page.goto(file.as_uri())
    return page


@pytest.mark.parametrize("name", ["whole", "hostile", "empty"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_passes_axe_and_fits_its_width(
    browser: "Browser", pages: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    # the page's policy would keep axe itself out
    page = opened(browser, pages[name], width, color_scheme=scheme, bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert faults_by_axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


def test_hostile_text_never_runs_loads_or_leaves(
    browser: "Browser", pages: dict[str, Path]
) -> None:
    page = browser.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.goto(pages["hostile"].as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.mouse.wheel(0, 20_000)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.owned") is None
    assert page.evaluate("document.querySelectorAll('script, img, iframe').length") == 0
    assert (said, asked) == ([], [pages["hostile"].as_uri()])
    assert page.url == pages["hostile"].as_uri()
    page.close()


def test_even_markup_that_slipped_through_would_not_run(
    browser: "Browser", pages: dict[str, Path], tmp_path: Path
) -> None:
    attack = "<script>window.owned=1</script><img src=x onerror=window.owned=1>"
    file = tmp_path / "slipped.html"
    file.write_text(pages["empty"].read_text("utf-8").replace("<main>", f"<main>{attack}"), "utf-8")
    page = opened(browser, file)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.owned") is None
    page.close()


def test_prompts_unfold_without_a_script(browser: "Browser", pages: dict[str, Path]) -> None:
    page = opened(browser, pages["whole"], java_script_enabled=False)
    step = page.locator("details.step:not(.local)").first
    step.locator("summary").first.click()
    prompt = step.locator("details").nth(1)
    assert not prompt.locator("pre").is_visible()
    prompt.locator("summary").click()
    assert prompt.locator("pre").is_visible()
    page.close()


def test_the_quotation_is_marked_and_the_styles_apply(
    browser: "Browser", pages: dict[str, Path]
) -> None:
    page = opened(browser, pages["whole"])
    assert "£5.9 million" in page.locator("mark").first.inner_text()
    paper = page.evaluate("getComputedStyle(document.querySelector('mark')).backgroundColor")
    assert paper not in ("rgba(0, 0, 0, 0)", "rgb(255, 255, 0)")
    page.close()


def test_what_is_folded_is_printed(browser: "Browser", pages: dict[str, Path]) -> None:
    from pypdfium2 import PdfDocument  # type: ignore[import-untyped]  # it ships no types

    page = opened(browser, pages["whole"])
    printed = PdfDocument(page.pdf(format="A4"))
    texts = [leaf.get_textpage().get_text_range() for leaf in printed]
    printed.close()
    assert any("Copy out, word for word" in text for text in texts)
    page.close()
