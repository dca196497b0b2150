"""Making, listing and revoking keys."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from anyio.to_thread import run_sync
from starlette.responses import Response

from harness_core.collections import KeyGrant
from harness_core.collections.faults import InvalidRequestError
from harness_integrations.engine.service.calls import Call, reply
from harness_integrations.engine.service.catalogue import page
from harness_integrations.engine.service.requests import Grant, NewKey

_FIRST = datetime(1, 1, 1, tzinfo=UTC)


async def create_key(call: Call) -> Response:
    """A new key; its secret is in this reply and nowhere else."""
    asked = await call.body(NewKey)
    if (asked.kind == "scoped") != bool(asked.grants):
        raise InvalidRequestError("a scoped key has grants, a cluster key has none", "/grants")

    def create() -> Any:
        grants = [_grant(call, one) for one in asked.grants]
        return call.engine.keys.create(asked.kind, grants, expires_us=_moment(asked.expires_at))

    made = await run_sync(create)
    return reply({"id": made.id, "secret": made.secret, "kind": asked.kind}, 201)


def _moment(given: str | None) -> int | None:
    """Microseconds since the beginning of year 1, as the store keeps moments."""
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(given)
        return (moment - _FIRST) // timedelta(microseconds=1)
    except (ValueError, TypeError, OverflowError):  # TypeError: without a time zone
        raise InvalidRequestError("expires_at is an RFC 3339 time", "/expires_at") from None


def _grant(call: Call, asked: Grant) -> KeyGrant:
    """A grant by ids: a name given later to another collection does not inherit it."""
    space = call.engine.namespace(asked.namespace)
    found = "*" if asked.collection == "*" else space.collection(asked.collection).id
    return KeyGrant(namespace_id=space.id, collection_id=found, actions=tuple(asked.actions))


async def list_keys(call: Call) -> Response:
    """The keys, without their secrets."""
    found = await run_sync(call.engine.keys.list)
    return reply(page([asdict(one) for one in found]))


async def revoke_key(call: Call) -> Response:
    """Revoke a key at once."""
    await run_sync(partial(call.engine.keys.revoke, call.request.path_params["key"]))
    return Response(status_code=204)
