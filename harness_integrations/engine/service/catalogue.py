"""Namespaces, collections and their fields."""

from dataclasses import asdict
from typing import Any

from anyio.to_thread import run_sync
from starlette.responses import Response

from harness_integrations.engine.service.calls import Call, reply
from harness_integrations.engine.service.requests import NewCollection, NewFields, NewNamespace


def page(items: list[Any], next_cursor: str | None = None) -> dict[str, Any]:
    """A page of a list."""
    return {"items": items, "next_cursor": next_cursor}


async def create_namespace(call: Call) -> Response:
    """A new namespace."""
    asked = await call.body(NewNamespace)
    return reply(asdict(await run_sync(call.engine.create_namespace, asked.name)), 201)


async def list_namespaces(call: Call) -> Response:
    """The namespaces that the key sees."""
    found = await run_sync(call.engine.list_namespaces)
    return reply(page([asdict(one) for one in found if call.sees(one.id)]))


async def show_namespace(call: Call) -> Response:
    """One namespace."""
    return reply(asdict(call.namespace.info))


async def delete_namespace(call: Call) -> Response:
    """Delete a namespace with everything in it."""
    await run_sync(call.engine.delete_namespace, call.namespace.id)
    return Response(status_code=204)


async def create_collection(call: Call) -> Response:
    """A new collection."""
    asked = await call.body(NewCollection)

    def create() -> Any:
        return call.namespace.create_collection(
            asked.name,
            access_control=asked.access_control,
            metadata_fields=asked.metadata_fields,
        ).info()

    return reply((await run_sync(create)).wire(), 201)


async def list_collections(call: Call) -> Response:
    """The collections that the key sees."""

    def seen() -> list[Any]:
        found = call.namespace.list_collections()
        return [one.info().wire() for one in found if call.sees(call.namespace.id, one.id)]

    return reply(page(await run_sync(seen)))


async def show_collection(call: Call) -> Response:
    """One collection: its state, its files by status, its fields."""
    return reply((await run_sync(call.collection.info)).wire())


async def delete_collection(call: Call) -> Response:
    """Delete a collection with its files."""
    await run_sync(call.namespace.delete_collection, call.collection.id)
    return Response(status_code=204)


async def set_fields(call: Call) -> Response:
    """Replace the list of fields; says how many stored values each type cannot read."""
    asked = await call.body(NewFields)
    unreadable = await run_sync(call.collection.set_fields, asked.fields)
    return reply({"fields": asked.fields, "unreadable": unreadable})
