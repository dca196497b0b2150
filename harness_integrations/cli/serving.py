"""The service over collections, from the command line."""

from contextlib import suppress
from ipaddress import ip_address
from typing import Annotated

import typer

from harness_core.collections import Collections
from harness_core.collections.faults import AlreadyExistsError
from harness_integrations.cli.clients import client_for
from harness_integrations.cli.console import say
from harness_integrations.cli.exits import clear_errors
from harness_integrations.cli.stores import (
    STORE,
    EmbedderOption,
    ModelOption,
    PathOption,
    PepperOption,
    embedder_for,
    opened,
    pepper_for,
    seer,
)
from harness_integrations.shared.extras import needs


def serve(
    path: PathOption = STORE,
    host: Annotated[
        str, typer.Option(help="Where to listen; this machine alone by default.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 8080,
    model: ModelOption = None,
    embedder: EmbedderOption = None,
    pepper_file: PepperOption = None,
    vision: Annotated[
        str | None, typer.Option(help="An OpenAI model id that describes images in questions.")
    ] = None,
    fetch_from: Annotated[
        list[str] | None,
        typer.Option(help="A host that files may be fetched from, by https; repeatable."),
    ] = None,
) -> None:
    """Serve collections over HTTP, with a page to try them at /."""
    with clear_errors():
        with needs("serve", "starlette", "uvicorn", "httpx"):
            from harness_integrations.engine.service.app import ServiceApp
            from harness_integrations.engine.service.serving import serve as run
            from harness_integrations.engine.service.settings import ServiceSettings
            from harness_integrations.engine.service.sources import Sources
        settings = ServiceSettings(sources=Sources(hosts=tuple(fetch_from or ())))
        client, note = client_for(model)
        if note:
            say(note)
        pepper, eyes = pepper_for(path, pepper_file), seer(vision)
        with opened(path, client, pepper, eyes, embedder_for(embedder)) as engine:
            app = ServiceApp(engine, settings)
            run(app, host=host, port=port, ready=lambda url: _welcome(url, _first_key(engine)))


def _first_key(engine: Collections) -> str | None:
    """A cluster key where there is no key at all, and a place to put the first files.

    Of several processes that begin at once on an empty store one is given a key.
    """
    if engine.keys.list(limit=1):
        return None
    with suppress(AlreadyExistsError):
        engine.create_namespace("default")
    with suppress(AlreadyExistsError):
        engine.namespace("default").create_collection("documents")
    made = engine.keys.create_first()
    return None if made is None else made.secret


def _welcome(url: str, secret: str | None) -> None:
    say(f"serving at {url}")
    if not _is_loopback(url):
        say("this address is reachable from other machines, and unencrypted: put TLS before it")
    if secret is None:
        say(f"open {url}/ with a key you have, or make one: harness collection keys --new")
        return
    say(f"cluster key, shown once: {secret}")
    say(f"open {url}/#key={secret}")


def _is_loopback(url: str) -> bool:
    host = url.partition("//")[2].rpartition(":")[0].strip("[]")
    return ip_address(host).is_loopback
