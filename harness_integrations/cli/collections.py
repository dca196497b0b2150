"""Collections from the command line: their files, their keys, and questions to them."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from harness_core import BadSettingError
from harness_core.collections import Collection, Collections, Key, KeyGrant, Namespace
from harness_core.collections.faults import (
    AlreadyExistsError,
    NotFoundError,
)
from harness_core.collections.filters.shorthand import wire_filter
from harness_integrations.cli.clients import client_for
from harness_integrations.cli.console import print_json, print_rows, say
from harness_integrations.cli.exits import OTHER, clear_errors
from harness_integrations.cli.stores import (
    STORE,
    EmbedderOption,
    ModelOption,
    PathOption,
    PepperOption,
    embedder_for,
    opened,
    pepper_for,
)

collections = typer.Typer(
    help="Keep files in collections and ask them questions.", no_args_is_help=True
)

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
    with clear_errors(), opened(path) as engine:
        fields = dict(_pair(one, "a field is key=type, as in team=text") for one in field or ())
        with suppress(AlreadyExistsError):
            engine.create_namespace(namespace)
        made = engine.namespace(namespace).create_collection(
            name, access_control="enforced" if enforced else "off", metadata_fields=fields
        )
        say(f"created {namespace}/{name} ({made.id})")


def _pair(given: str, rule: str) -> tuple[str, str]:
    key, found, value = given.partition("=")
    if not found:
        raise BadSettingError(f"{rule}, not {given!r}")
    return key, value


def _value(given: str) -> Any:
    """A number, true, false or null as such; anything else is text."""
    try:
        return json.loads(given)
    except ValueError:
        return given


@collections.command("list")
def list_them(
    name: Annotated[str | None, typer.Argument(help="The collection whose files to list.")] = None,
    path: PathOption = STORE,
    namespace: NamespaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """List the collections of a namespace, or the files of one."""
    with clear_errors(), opened(path) as engine:
        if name is None:
            spaces = [one.info().wire() for one in engine.namespace(namespace).list_collections()]
            rows = [{**one, "files": sum(one["counts"].values())} for one in spaces]
        else:
            rows = [one.wire() for one in _collection(engine, namespace, name).files()]
    if as_json:
        print_json(rows)
    elif name is None:
        print_rows(rows, ["name", "state", "files", "access_control"])
    else:
        _print_files(rows)


def _print_files(files: list[dict[str, Any]]) -> None:
    rows = [{**one, "error": (one.get("error") or {}).get("message")} for one in files]
    print_rows(rows, ["path", "status", "bytes", "error"])


@collections.command("add")
def add(
    name: NameArgument,
    files: Annotated[
        list[Path], typer.Argument(help="The files to add.", exists=True, dir_okay=False)
    ],
    path: PathOption = STORE,
    namespace: NamespaceOption = "default",
    principal: PrincipalOption = None,
    metadata: Annotated[
        list[str] | None, typer.Option(help="What filters may ask for, as key=value; repeatable.")
    ] = None,
    embedder: EmbedderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add files and process them; exits 1 when one could not be read."""
    with clear_errors(), opened(path, embedder=embedder_for(embedder)) as engine:
        target = _collection(engine, namespace, name)
        said = dict(_pair(one, "metadata is key=value, as in year=1911") for one in metadata or ())
        known = {key: _value(value) for key, value in said.items()}
        added = [
            target.add(f"/{file.name}", file, metadata=known, principals=principal or ()).wire()
            for file in files
        ]
    if as_json:
        print_json(added)
    else:
        _print_files(added)
    if any(one["status"] != "ready" for one in added):
        raise typer.Exit(OTHER)


@collections.command("embed")
def embed(
    name: NameArgument,
    model: Annotated[str, typer.Argument(help="An OpenAI embedding model id.")],
    path: PathOption = STORE,
    namespace: NamespaceOption = "default",
) -> None:
    """Embed the files that were added without this embedding model."""
    with clear_errors(), opened(path, embedder=embedder_for(model)) as engine:
        done = _collection(engine, namespace, name).embed_missing()
        say(f"embedded {done} file(s) with {model}")


@collections.command("ask")
def ask(
    name: NameArgument,
    question: Annotated[str, typer.Argument(help="What to ask it.")],
    path: PathOption = STORE,
    namespace: NamespaceOption = "default",
    effort: Annotated[str, typer.Option(help="medium or high.")] = "medium",
    principal: PrincipalOption = None,
    where: Annotated[
        str | None, typer.Option("--filter", help='A filter, as JSON: {"year": 1911}.')
    ] = None,
    model: ModelOption = None,
    embedder: EmbedderOption = None,
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
            "filter": wire_filter(_json(where)),
        }
        with opened(path, client, embedder=embedder_for(embedder)) as engine:
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
    pepper_file: PepperOption = None,
) -> None:
    """List the keys of the service, make one, or revoke one."""
    with clear_errors(), opened(path, pepper=pepper_for(path, pepper_file)) as engine:
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
                {
                    "id": one.id,
                    "kind": one.kind,
                    "created": one.created_at,
                    "revoked": one.revoked,
                    "may": _may(one),
                }
                for one in engine.keys.list()
            ]
            print_rows(rows, ["id", "kind", "created", "revoked", "may"])


def _may(key: Key) -> str:
    return "; ".join(f"{', '.join(one.actions)} {one.collection_id}" for one in key.grants)


def _grant(engine: Collections, given: str) -> KeyGrant:
    place, _, actions = given.partition(":")
    namespace, _, name = place.partition("/")
    space = engine.namespace(namespace)
    found = "*" if name == "*" else space.collection(name).id
    listed: Any = tuple(one.strip() for one in actions.split(",") if one.strip())
    return KeyGrant(namespace_id=space.id, collection_id=found, actions=listed)


def _collection(engine: Collections, namespace: str, name: str) -> Collection:
    space: Namespace = engine.namespace(namespace)
    try:
        return space.collection(name)
    except NotFoundError:
        known = ", ".join(one.name for one in space.list_collections()) or "none"
        raise NotFoundError(f"no collection {name!r} in {namespace!r}; there is: {known}") from None
