"""A service with an empty collection, and its page in a browser."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_core.client import Client
from harness_core.collections import Collection, Collections, in_this_process
from harness_integrations.engine.service.app import ServiceApp
from harness_integrations.engine.service.serving import running
from tests.engine.conftest import QUICK

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@dataclass
class Site:
    """A service with an empty collection, and pages opened on it; ``wrong`` is what went wrong."""

    browser: "Browser"
    url: str
    engine: Collections
    key: str
    wrong: list[str] = field(default_factory=list)

    @property
    def reports(self) -> Collection:
        """The collection that the page opens with."""
        return self.engine.namespace("acme").collection("reports")

    def page(self, width: int = 1280, **more: Any) -> "Page":
        """The page, where nothing has been entered."""
        page = self.browser.new_page(viewport={"width": width, "height": 900}, **more)
        page.set_default_timeout(60_000)
        wrong, own = self.wrong, (self.url, "data:")
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda one: None if one.url.startswith(own) else wrong.append(one.url))
        page.goto(self.url)
        return page

    def opened(self, width: int = 1280, **more: Any) -> "Page":
        """The page at its first collection."""
        page = self.page(width, **more)
        page.fill("#key", self.key)
        page.click("#enter button")
        page.wait_for_selector("#work:not([hidden])")
        return page


@contextmanager
def site_at(browser: "Browser", folder: Path, client: Client, **more: Any) -> Iterator[Site]:
    engine = Collections(folder / "engine.db", client=client, ingestion=in_this_process)
    with closing(engine):
        engine.create_namespace("acme")
        engine.namespace("acme").create_collection("reports")
        with running(ServiceApp(engine, QUICK, **more)) as url:
            yield Site(browser, url, engine, engine.keys.create("cluster").secret)
            for context in browser.contexts:
                context.close()
