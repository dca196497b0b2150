"""Namespaces, collections and their fields."""

from dataclasses import asdict
from functools import partial
from operator import attrgetter
from typing import Any

from anyio.to_thread import run_sync
from starlette.responses import Response

from harness_core.collections import Collection
from harness_core.collections.faults import NotFoundError
from harness_integrations.engine.service.calls import Call, reply
from harness_integrations.engine.service.pages import window_of
from harness_integrations.engine.service.requests import NewCollection, NewFields, NewNamespace

_NAME = attrgetter("name")


async def create_namespace(call: Call) -> Response:
    """A new namespace."""
    asked = await call.body(NewNamespace)
    return await call.write(lambda: asdict(call.engine.create_namespace(asked.name)), 201)


async def list_namespaces(call: Call) -> Response:
    """The namespaces that the key sees, by name."""
    window = window_of(call)

    def look() -> Any:
        found = window.filled(
            lambda after, limit: call.engine.list_namespaces(after=after, limit=limit),
            _NAME, lambda one: call.sees(one.id),
        )  # fmt: skip
        return window.page(found, _NAME, asdict)

    return reply(await run_sync(look))


async def show_namespace(call: Call) -> Response:
    """One namespace."""
    return reply(asdict(call.namespace.info))


async def delete_namespace(call: Call) -> Response:
    """Delete a namespace with everything in it."""
    return await call.write(lambda: call.engine.delete_namespace(call.namespace.id))


async def create_collection(call: Call) -> Response:
    """A new collection."""
    asked = await call.body(NewCollection)

    def create() -> Any:
        made = call.namespace.create_collection(
            asked.name,
            access_control=asked.access_control,
            metadata_fields=asked.metadata_fields,
        )
        return made.info().wire()

    return await call.write(create, 201)


async def list_collections(call: Call) -> Response:
    """The collections that the key sees, by name."""
    window, space = window_of(call), call.namespace

    def look() -> Any:
        found = window.filled(
            lambda after, limit: space.list_collections(after=after, limit=limit),
            _NAME, lambda one: call.sees(space.id, one.id),
        )  # fmt: skip
        told = window.page(found, _NAME, partial(_status, call))
        return {**told, "items": [one for one in told["items"] if one is not None]}

    return reply(await run_sync(look))


def _status(call: Call, one: Collection) -> Any:
    """A collection as ``show_collection`` tells it; how many files it holds, to those who read."""
    try:
        told = one.info().wire()
    except NotFoundError:  # deleted since it was listed
        return None
    reads = call.key is not None and call.key.may(call.namespace.id, one.id, "read")
    return told if reads else {**told, "counts": {}}


async def show_collection(call: Call) -> Response:
    """One collection: its state, its files by status, its fields."""
    return reply((await run_sync(call.collection.info)).wire())


async def delete_collection(call: Call) -> Response:
    """Delete a collection with its files."""
    return await call.write(lambda: call.namespace.delete_collection(call.collection.id))


async def set_fields(call: Call) -> Response:
    """Replace the list of fields; says how many stored values each type cannot read."""
    asked = await call.body(NewFields)

    def change() -> Any:
        return {"fields": asked.fields, "unreadable": call.collection.set_fields(asked.fields)}

    return await call.write(change)
