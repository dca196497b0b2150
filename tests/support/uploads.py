"""Files put into a collection of a running service, and what became of them."""

from typing import Any

import httpx

from tests.support.engine import World, path_of


def put(
    world: World, path: str, data: bytes, *, to: str = "void", content_type: str = "", **more: str
) -> httpx.Response:
    """The reply to an upload; nothing is processed yet."""
    headers = {"content-type": content_type} if content_type else {}
    url = path_of(to, "/files:upload")
    return world.request(
        "PUT", url, params={"path": path, **more}, content=data, headers=headers
    )  # fmt: skip


def settled(world: World, path: str, data: bytes, **more: Any) -> dict[str, Any]:
    """The file that an upload became, once everything was processed."""
    added = put(world, path, data, **more)
    assert added.status_code == 202, added.text
    world.engine.process()
    url = path_of(more.get("to", "void"), f"/files/{added.json()['id']}")
    found: dict[str, Any] = world.request("GET", url).json()
    return found


def listed(world: World, collection: str = "void") -> list[dict[str, Any]]:
    """The living files of a collection."""
    page = world.request("GET", path_of(collection, "/files"), params={"limit": "1000"})
    items: list[dict[str, Any]] = page.json()["items"]
    return items
