"""Making, listing and revoking keys."""

from dataclasses import asdict
from functools import partial
from operator import attrgetter
from typing import Any

from anyio.to_thread import run_sync
from starlette.responses import Response

from harness_core.collections import KeyGrant
from harness_core.collections.faults import InvalidRequestError
from harness_core.collections.filters.values import instant
from harness_core.collections.times import shown
from harness_integrations.engine.service.calls import Call, reply
from harness_integrations.engine.service.once import HEADER
from harness_integrations.engine.service.pages import window_of
from harness_integrations.engine.service.requests import Grant, NewKey


async def create_key(call: Call) -> Response:
    """A new key; its secret is in this reply and nowhere else."""
    if HEADER in call.request.headers:
        raise InvalidRequestError("a reply with a secret is not kept: leave out Idempotency-Key")
    asked = await call.body(NewKey)
    if (asked.kind == "scoped") != bool(asked.grants):
        raise InvalidRequestError("a scoped key has grants, a cluster key has none", "/grants")

    def create() -> Any:
        grants = [_grant(call, one) for one in asked.grants]
        return call.engine.keys.create(asked.kind, grants, expires_us=_moment(asked.expires_at))

    made = await call.written(create)
    return reply({"id": made.id, "secret": made.secret, "kind": asked.kind}, 201)


def _moment(given: str | None) -> int | None:
    """A moment as the store keeps it."""
    if given is None:
        return None
    try:
        found = instant(given)
        shown(found)  # one that no list of keys could show is none
        return found
    except (ValueError, OverflowError):
        raise InvalidRequestError("expires_at is an RFC 3339 time", "/expires_at") from None


def _grant(call: Call, asked: Grant) -> KeyGrant:
    """A grant by ids: a name given later to another collection does not inherit it."""
    space = call.engine.namespace(asked.namespace)
    found = "*" if asked.collection == "*" else space.collection(asked.collection).id
    return KeyGrant(namespace_id=space.id, collection_id=found, actions=tuple(asked.actions))


async def list_keys(call: Call) -> Response:
    """The keys, oldest first, without their secrets."""
    window = window_of(call)
    look = partial(call.engine.keys.list, after=window.after, limit=window.limit + 1)
    return reply(window.page(await run_sync(look), attrgetter("id"), asdict))


async def revoke_key(call: Call) -> Response:
    """Revoke a key at once."""
    await call.written(partial(call.engine.keys.revoke, call.request.path_params["key"]))
    return Response(status_code=204)
