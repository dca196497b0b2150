"""Collections from the command line, and the service over them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from harness_core import BadSettingError
from harness_core.client import Client
from harness_core.collections import Collection, Collections, KeyGrant, Namespace
from harness_core.collections.faults import AlreadyExistsError, NotFoundError
from harness_integrations.cli.clients import client_for
from harness_integrations.cli.console import print_json, print_rows, say
from harness_integrations.cli.exits import OTHER, clear_errors
from harness_integrations.shared.extras import needs

STORE: Final = Path("collections.db")

collections = typer.Typer(
    help="Keep files in collections and ask them questions.", no_args_is_help=True
)

PathOption = Annotated[Path, typer.Option(help="The file that holds the collections.")]
NamespaceOption = Annotated[str, typer.Option(help="The namespace.")]
NameArgument = Annotated[str, typer.Argument(help="The collection.")]
PrincipalOption = Annotated[
    list[str] | None, typer.Option("--principal", help="Who asks, or who may see; repeatable.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


@collections.command("create")
def create(
    name: NameArgument,
    path: PathOption = STORE,
    namespace: NamespaceOption = "default",
    enforced: Annotated[
        bool, typer.Option("--enforced", help="Each question must say who asks.")
    ] = False,
    field: Annotated[
        list[str] | None, typer.Option(help="A metadata field to filter by, as key=type.")
    ] = None,
) -> None:
    """Create a collection, and its namespace where there is none."""
    with clear_errors(), _opened(path) as engine:
        fields = dict(_pair(one) for one in field or ())
        with suppress(AlreadyExistsError):
            engine.create_namespace(namespace)
        made = engine.namespace(namespace).create_collection(
            name, access_control="enforced" if enforced else "off", metadata_fields=fields
        )
        say(f"created {namespace}/{name} ({made.id})")


def _pair(given: str) -> tuple[str, str]:
    key, found, kind = given.rpartition("=")
    if not found:
        raise BadSettingError(f"a field is key=type, as in team=text, not {given!r}")
    return key, kind


@collections.command("add")
def add(
    name: NameArgument,
    files: Annotated[
        list[Path], typer.Argument(help="The files to add.", exists=True, dir_okay=False)
    ],
    path: PathOption = STORE,
    namespace: NamespaceOption = "default",
    principal: PrincipalOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add files and process them; exits 1 when one could not be read."""
    with clear_errors(), _opened(path) as engine:
        target = _collection(engine, namespace, name)
        added = [
            target.add(f"/{file.name}", file, principals=principal or ()).wire() for file in files
        ]
    if as_json:
        print_json(added)
    else:
        rows = [{**one, "error": (one.get("error") or {}).get("message")} for one in added]
        print_rows(rows, ["path", "status", "bytes", "error"])
    if any(one["status"] != "ready" for one in added):
        raise typer.Exit(OTHER)


@collections.command("ask")
def ask(
    name: NameArgument,
    question: Annotated[str, typer.Argument(help="What to ask it.")],
    path: PathOption = STORE,
    namespace: NamespaceOption = "default",
    effort: Annotated[str, typer.Option(help="medium or high.")] = "medium",
    principal: PrincipalOption = None,
    where: Annotated[str | None, typer.Option("--filter", help="A filter, as JSON.")] = None,
    model: Annotated[
        str | None, typer.Option(help="An OpenAI model id, or langchain:provider:model.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from a collection, and say where the answer stands."""
    with clear_errors():
        client, note = client_for(model)
        if note and not as_json:
            say(note)
        asked = {
            "query": question,
            "effort": effort,
            "principals": principal,
            "filter": _json(where),
        }
        with _opened(path, client) as engine:
            result = _collection(engine, namespace, name).answer(asked)
    if as_json:
        print_json(result.wire())
        return
    typer.echo(result.answer)
    for source in result.sources:
        if source.cited:
            say(f"{source.ref}  {source.path}{_place(source.span)}")
    if result.partial:
        say(f"partial: {', '.join(result.partial_reasons)}")


def _place(span: Any) -> str:
    if span.pages is not None:
        return f", page {span.pages.start}"
    return f", characters {span.start} to {span.end}"


def _json(given: str | None) -> Any:
    try:
        return None if given is None else json.loads(given)
    except ValueError:
        raise BadSettingError("the filter is not JSON") from None


@collections.command("keys")
def keys(
    path: PathOption = STORE,
    new: Annotated[bool, typer.Option("--new", help="Make a cluster key.")] = False,
    grant: Annotated[
        list[str] | None,
        typer.Option(help="Make a scoped key: namespace/collection:action,action; repeatable."),
    ] = None,
    revoke: Annotated[str | None, typer.Option(help="Revoke the key of this id.")] = None,
) -> None:
    """List the keys of the service, make one, or revoke one."""
    with clear_errors(), _opened(path) as engine:
        if revoke is not None:
            engine.keys.revoke(revoke)
            say(f"revoked {revoke}")
        elif new or grant:
            grants = [_grant(engine, one) for one in grant or ()]
            made = engine.keys.create("scoped" if grants else "cluster", grants)
            say("this is shown once:")
            typer.echo(made.secret)
        else:
            rows = [
                {"id": one.id, "kind": one.kind, "created": one.created_at, "revoked": one.revoked}
                for one in engine.keys.list()
            ]
            print_rows(rows, ["id", "kind", "created", "revoked"])


def _grant(engine: Collections, given: str) -> KeyGrant:
    place, _, actions = given.partition(":")
    namespace, _, name = place.partition("/")
    space = engine.namespace(namespace)
    found = "*" if name == "*" else space.collection(name).id
    listed: Any = tuple(one.strip() for one in actions.split(",") if one.strip())
    return KeyGrant(namespace_id=space.id, collection_id=found, actions=listed)


def serve(
    path: PathOption = STORE,
    host: Annotated[
        str, typer.Option(help="Where to listen; this machine alone by default.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 8080,
    model: Annotated[
        str | None, typer.Option(help="An OpenAI model id, or langchain:provider:model.")
    ] = None,
) -> None:
    """Serve collections over HTTP, with a page to try them at /."""
    with clear_errors():
        with needs("serve", "starlette", "uvicorn"):
            from harness_integrations.engine.service.app import ServiceApp
            from harness_integrations.engine.service.serving import serve as run
        client, note = client_for(model)
        if note:
            say(note)
        with _opened(path, client) as engine:
            secret = _first_key(engine)
            run(ServiceApp(engine), host=host, port=port, ready=lambda url: _welcome(url, secret))


def _first_key(engine: Collections) -> str | None:
    """A cluster key where there is no key at all, and a place to put the first files."""
    if engine.keys.list():
        return None
    with suppress(AlreadyExistsError):
        engine.create_namespace("default")
        engine.namespace("default").create_collection("documents")
    return engine.keys.create("cluster").secret


def _welcome(url: str, secret: str | None) -> None:
    say(f"serving at {url}")
    if not _is_loopback(url):
        say("this address is reachable from other machines, and unencrypted: put TLS before it")
    if secret is None:
        say("use a key you have, or make one: harness collection keys --new")
        return
    say(f"cluster key, shown once: {secret}")
    say(f"open {url}/#key={secret}")


def _is_loopback(url: str) -> bool:
    host = url.partition("//")[2].rpartition(":")[0].strip("[]")
    return ip_address(host).is_loopback


@contextmanager
def _opened(path: Path, client: Client | None = None) -> Iterator[Collections]:
    engine = Collections(path, client=client)
    try:
        yield engine
    finally:
        engine.close()


def _collection(engine: Collections, namespace: str, name: str) -> Collection:
    space: Namespace = engine.namespace(namespace)
    try:
        return space.collection(name)
    except NotFoundError:
        known = ", ".join(one.name for one in space.list_collections()) or "none"
        raise NotFoundError(f"no collection {name!r} in {namespace!r}; there is: {known}") from None
