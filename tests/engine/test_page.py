"""The page of the service in a real browser: from a file to a passage."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from harness_core import ExtractiveClient, example_document
from harness_core.collections import KeyGrant
from tests.support.browser import chromium, faults_by_axe
from tests.support.engine import Scripted, cite, put
from tests.support.site import Site, site_at

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.service
browser = pytest.fixture(scope="module")(chromium)
WIDTHS = [1280, 390]
BRIDGE = "The harbour bridge was painted green in 1931."
WHEN = "When was the harbour bridge painted green?"
HOSTILE = "The harbour bridge <i onclick=alert(1)>was</i> painted green in 1931."
HOSTILE_NAME = '<img src=x onerror="alert(2)">&lt;b&gt;.md'


@pytest.fixture
def site(browser: "Browser", tmp_path: Path) -> Iterator[Site]:
    with site_at(browser, tmp_path, ExtractiveClient()) as made:
        yield made
        assert made.wrong == []


@pytest.fixture
def idle(browser: "Browser", tmp_path: Path) -> Iterator[Site]:
    """A service that leaves what is added as it is."""
    with site_at(browser, tmp_path, ExtractiveClient(), work=False) as made:
        yield made
        assert made.wrong == []


def ask(page: "Page", question: str) -> None:
    """Ask, and wait for one answer more than there was."""
    before = page.locator(".answer").count()
    page.fill("#query", question)
    page.click("#send")
    page.locator(".answer").nth(before).wait_for()


def passage(page: "Page", opener: str = ".answer:first-child .cite") -> tuple[str, str, str]:
    """Where the passage stands, the passage, and the text around it."""
    page.click(opener)
    page.wait_for_selector("#passage[open]")
    told = [page.text_content(name) or "" for name in ("#passage-place", "#passage mark", "#text")]
    page.keyboard.press("Escape")
    return told[0], told[1], told[2]


def in_width(page: "Page", width: int) -> bool:
    """Whether nothing stands out at the side."""
    return bool(page.evaluate("document.documentElement.scrollWidth") <= width)


@pytest.mark.parametrize("width", WIDTHS)
def test_from_files_to_the_passages_behind_an_answer(
    site: Site, tmp_path: Path, width: int
) -> None:
    (tmp_path / "bridge.md").write_text(f"# Skerrin\n\n{BRIDGE}")
    page = site.opened(width)
    page.locator("#state", has_text="empty").wait_for()
    page.set_input_files("#upload", [Path(example_document("pdf")), tmp_path / "bridge.md"])
    page.locator(".status.ready").nth(1).wait_for()
    page.locator("#state", has_text="2 of 2 ready").wait_for()

    ask(page, "How big was the deficit of the pension scheme?")
    place, marked, shown = passage(page)
    assert place == "page 3"
    assert "pension scheme" in marked
    assert "deficit of" in marked
    assert marked in shown
    assert len(shown) > len(marked)
    assert in_width(page, width)

    ask(page, WHEN)
    place, marked, shown = passage(page)
    assert place.startswith("characters ")
    assert BRIDGE in marked
    assert marked in shown


def test_a_word_document_is_shown_around_the_passage(site: Site) -> None:
    page = site.opened()
    page.set_input_files("#upload", [example_document("docx")])
    page.wait_for_selector(".status.ready")
    ask(page, "How big was the deficit of the pension scheme?")
    place, marked, shown = passage(page)
    assert place.startswith("characters ")
    assert "pension scheme" in marked
    assert len(shown) > 3 * len(marked)


def test_a_passage_is_found_by_code_points_in_a_long_text(idle: Site) -> None:
    start = "\U0001f600 na\u00efve " * 2500
    put(idle.reports, "/long.txt", start + BRIDGE + start, len(start), len(start + BRIDGE),
        len(start + BRIDGE + start))  # fmt: skip
    page = idle.opened()
    ask(page, WHEN)
    place, marked, shown = passage(page)
    assert marked == BRIDGE
    assert shown == start + BRIDGE + start
    assert place == f"characters {len(start) + 1}\u2013{len(start + BRIDGE)}"


def test_of_a_text_too_long_to_be_shown_the_passage_is(idle: Site) -> None:
    start = "x" * (4 * 2**20)
    put(idle.reports, "/long.txt", start + BRIDGE, len(start), len(start + BRIDGE))
    page = idle.opened()
    ask(page, WHEN)
    place, marked, shown = passage(page)
    assert marked == shown == BRIDGE
    assert "too long to be shown whole" in place


@pytest.mark.parametrize("width", WIDTHS)
def test_many_files_are_listed_in_a_box_of_their_own(idle: Site, width: int) -> None:
    for number in range(60):
        put(idle.reports, f"/{number:03d}-{'long-name-' * 12}.txt", f"Page {number}. {BRIDGE}")
    page = idle.page(width)
    page.route(
        "**/files?limit=1000**",
        lambda route: route.continue_(url=route.request.url.replace("limit=1000", "limit=25")),
    )
    page.fill("#key", idle.key)
    page.click("#enter button")
    page.locator("#files li").nth(59).wait_for()
    page.locator("#state", has_text="60 of 60 ready").wait_for()
    assert page.evaluate("document.querySelector('#files').scrollHeight > innerHeight")
    box = page.locator("#files").bounding_box()
    assert box is not None
    assert box["height"] <= 0.6 * 900
    assert in_width(page, width)


def test_what_happens_to_the_files_shows_without_a_reload(site: Site) -> None:
    page = site.opened()
    site.reports.add("/first.txt", BRIDGE)
    page.wait_for_selector("[aria-label='Delete first.txt']")
    site.reports.add("/broken.pdf", b"%PDF-1.4 nothing")
    page.wait_for_selector(".status.failed")
    assert "could not be read" in (page.text_content(".why") or "")
    page.locator("#state", has_text="1 of 2 ready").wait_for()
    for one in site.reports.files():
        site.reports.delete(one.id)
    page.locator("#state", has_text="empty").wait_for()


def test_a_file_may_be_dropped_anywhere_and_is_deleted_only_after_a_question(site: Site) -> None:
    page = site.opened()
    dropped = page.evaluate_handle(
        "text => { const given = new DataTransfer(), file = new File([text], 'dropped.txt');"
        " given.items.add(file); return given; }",
        BRIDGE,
    )
    page.dispatch_event("h1", "drop", {"dataTransfer": dropped})
    page.wait_for_selector(".status.ready")
    page.once("dialog", lambda asked: asked.dismiss())
    page.click("[aria-label='Delete dropped.txt']")
    assert len(site.reports.files()) == 1
    page.once("dialog", lambda asked: asked.accept())
    page.click("[aria-label='Delete dropped.txt']")
    page.locator("[aria-label='Delete dropped.txt']").wait_for(state="detached")
    assert site.reports.files() == []


def test_html_in_names_texts_and_answers_stays_text(site: Site, tmp_path: Path) -> None:
    site.reports.add(f"/{HOSTILE_NAME}", HOSTILE)
    page = site.opened()
    page.on("dialog", lambda said: site.wrong.append(said.message))
    page.on("console", lambda said: site.wrong.append(said.text))
    ask(page, WHEN)
    assert passage(page)[1] == HOSTILE
    assert "<i onclick=" in (page.text_content(".said") or "")
    assert HOSTILE_NAME in (page.text_content("#files") or "")
    assert HOSTILE_NAME in (page.text_content(".sources") or "")
    assert page.locator("img, i, iframe, b:not(.sources b)").count() == 0


def test_a_wrong_key_is_said_and_a_revoked_one_is_asked_for_again(site: Site) -> None:
    page = site.page()
    page.fill("#key", "wrong")
    page.click("#enter button")
    page.wait_for_selector("#problem:not([hidden])")
    assert page.text_content("#problem") == "the key is missing or not valid"
    spare = site.engine.keys.create("cluster")
    page.fill("#key", spare.secret)
    page.keyboard.press("Enter")
    page.wait_for_selector("#work:not([hidden])")
    assert not page.is_visible("#problem")
    page.fill("#query", WHEN)
    site.engine.keys.revoke(spare.id)
    page.keyboard.press("Enter")
    page.wait_for_selector("#enter:not([hidden])")
    assert page.text_content("#problem") == "the key is missing or not valid"
    assert not page.is_visible("#work")


def test_a_key_stays_in_its_tab_until_it_is_forgotten(site: Site) -> None:
    site.engine.namespace("acme").create_collection("second")
    page = site.page()
    page.goto(f"{site.url}/#key={site.key}")
    page.reload()  # the fragment alone loads nothing
    page.wait_for_selector("#work:not([hidden])")
    assert site.key not in page.url
    page.select_option("#collections", label="acme / second")
    page.reload()
    page.wait_for_selector("#work:not([hidden])")
    assert page.locator("#collections option:checked").text_content() == "acme / second"
    page.click("#leave")
    page.reload()
    page.wait_for_selector("#enter:not([hidden])")
    assert page.evaluate("sessionStorage.length") == 0


def test_a_collection_that_cannot_answer_says_why(idle: Site) -> None:
    page = idle.opened()
    page.fill("#query", WHEN)
    page.click("#send")
    page.locator(
        "#problem", has_text="holds no file; add one and wait until it is ready"
    ).wait_for()
    idle.reports.add("/a.txt", BRIDGE, wait=False)
    page.click("#send")
    page.locator("#problem", has_text="files of the collection are still being proc").wait_for()
    assert page.text_content("#send") == "Ask"


def test_a_key_that_may_only_ask_can_ask(site: Site) -> None:
    space, here = site.engine.namespace("acme"), site.reports
    here.add("/a.txt", BRIDGE)
    grant = KeyGrant(namespace_id=space.id, collection_id=here.id, actions=("query",))
    site.key = site.engine.keys.create("scoped", [grant]).secret
    page = site.opened()
    ask(page, WHEN)
    assert BRIDGE in passage(page)[1]
    page.locator("#state", has_text="the key does not permit this").wait_for()


def test_where_access_is_enforced_the_page_asks_who_may_see_and_who_asks(
    site: Site, tmp_path: Path
) -> None:
    site.engine.namespace("acme").create_collection("secure", access_control="enforced")
    (tmp_path / "bridge.txt").write_text(BRIDGE)
    page = site.opened()
    assert not page.is_visible("#principals")
    assert not page.is_visible("#grants")
    page.select_option("#collections", label="acme / secure")
    page.fill("#grants", "user:ann, group:harbour")
    page.set_input_files("#upload", [tmp_path / "bridge.txt"])
    page.wait_for_selector(".status.ready")
    page.fill("#principals", "user:bob")
    ask(page, WHEN)
    assert page.locator(".answer .cite, .answer details").count() == 0
    page.fill("#principals", "user:cyd, group:harbour")
    ask(page, WHEN)
    page.fill("#principals", "")  # the passage is read as the one who asked
    assert passage(page)[1] == BRIDGE


def test_an_answer_that_rests_on_less_says_so(browser: "Browser", tmp_path: Path) -> None:
    model = Scripted(lambda request: cite(request, 0) + " And more [chunk 99].")
    with site_at(browser, tmp_path, model) as site:
        site.reports.add("/a.txt", BRIDGE)
        page = site.opened()
        ask(page, WHEN)
        assert "rests on less than it could" in (page.text_content(".partial") or "")


def test_it_all_works_from_the_keyboard(site: Site, tmp_path: Path) -> None:
    (tmp_path / "bridge.md").write_text(BRIDGE)
    page = site.page()
    page.on("filechooser", lambda chooser: chooser.set_files([tmp_path / "bridge.md"]))

    def tab_to(selector: str) -> None:
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate("name => document.activeElement.matches(name)", selector):
                return
        raise AssertionError(f"{selector} is not reached")

    tab_to("#key")
    page.keyboard.type(site.key)
    page.keyboard.press("Enter")
    page.wait_for_selector("#work:not([hidden])")
    tab_to("#upload")
    page.keyboard.press("Enter")
    page.wait_for_selector(".status.ready")
    tab_to("#query")
    page.keyboard.type(WHEN)
    page.keyboard.press("Enter")
    page.wait_for_selector(".answer .cite")
    tab_to(".cite")
    page.keyboard.press("Enter")
    page.wait_for_selector("#passage[open] mark")
    page.keyboard.press("Escape")
    page.wait_for_selector("#passage", state="hidden")
    assert page.evaluate("document.activeElement.className") == "cite"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_passes_axe_in_each_of_its_states(site: Site, width: int, scheme: Any) -> None:
    secure = site.engine.namespace("acme").create_collection("secure", access_control="enforced")
    secure.add("/bridge.md", BRIDGE, principals=["user:ann"])
    secure.add("/broken.pdf", b"%PDF-1.4 nothing")

    def wrong_key(page: "Page") -> None:
        page.fill("#key", "wrong")
        page.click("#enter button")
        page.wait_for_selector("#problem:not([hidden])")

    def opened(page: "Page") -> None:
        page.fill("#key", site.key)
        page.click("#enter button")
        page.wait_for_selector("#work:not([hidden])")
        page.select_option("#collections", label="acme / secure")
        page.wait_for_selector(".status.failed")

    def answered(page: "Page") -> None:
        page.fill("#principals", "user:ann")
        ask(page, WHEN)

    def shown(page: "Page") -> None:
        page.click(".answer .cite")
        page.wait_for_selector("#passage[open]")

    # the page's policy would keep axe itself out
    page = site.page(width, color_scheme=scheme, bypass_csp=True)
    states: list[Callable[[Page], None]] = [wrong_key, opened, answered, shown]
    for state in states:
        state(page)
        assert (state.__name__, faults_by_axe(page)) == (state.__name__, [])
        assert in_width(page, width)


def test_the_page_comes_with_a_strict_policy(site: Site) -> None:
    for part in ("/", "/page/page.js", "/page/page.css"):
        response = httpx.get(site.url + part)
        policy = response.headers["content-security-policy"]
        assert response.status_code == 200
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
    page = httpx.get(site.url).text
    assert "<style" not in page
    assert " style=" not in page
    assert " on" not in page.replace(" only", "")
    assert httpx.get(site.url + "/page/..%2Fapp.py").status_code == 404
    assert httpx.get(site.url + "/page/app.py").status_code == 404
