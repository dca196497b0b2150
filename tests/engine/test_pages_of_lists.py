"""Lists come a page at a time, in one order, and hold what the key sees."""

from typing import Any

import pytest

from harness_core.collections import KeyGrant
from tests.support.engine import World, path_of, refused


def _pages(w: World, path: str, key: str = "K", limit: int = 2) -> list[list[Any]]:
    pages: list[list[Any]] = []
    params: dict[str, str] = {"limit": str(limit)}
    while True:
        told = w.request("GET", path, key, params=params).json()
        pages.append(told["items"])
        if told["next_cursor"] is None:
            return pages
        params["cursor"] = told["next_cursor"]


def _names(pages: list[list[Any]]) -> list[list[str]]:
    return [[one["name"] for one in page] for page in pages]


def test_each_list_is_told_whole_in_full_pages(own: World) -> None:
    for name in ("c", "a", "b"):
        own.engine.create_namespace(name)
    assert _names(_pages(own, "/namespaces")) == [["a", "acme"], ["b", "c"], ["other"]]
    names = _names(_pages(own, "/namespaces/acme/collections", limit=3))
    assert names == [["broken", "busy", "docs"], ["mixed", "secure", "void"]]
    files = _pages(own, path_of("docs", "/files"))
    assert [len(page) for page in files] == [2, 1]
    keys = _pages(own, "/keys", limit=4)
    assert [len(page) for page in keys] == [4, 1]
    ids = [one["id"] for page in keys for one in page]
    assert ids == [one.id for one in own.engine.keys.list()]


def test_what_a_key_does_not_see_takes_no_place_on_a_page(
    own: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness_integrations.engine.service.pages.BATCH", 2)
    space = own.space
    wanted = ["a1", "a9", "m5", "z1"]
    for name in sorted({*wanted, *(f"{one}{n}" for one in "amz" for n in range(10))}):
        space.create_collection(name)
    grants = [
        KeyGrant(namespace_id=space.id, collection_id=space.collection(name).id, actions=("query",))
        for name in wanted
    ]
    own.keys["few"] = own.engine.keys.create("scoped", grants).secret
    assert _names(_pages(own, "/namespaces/acme/collections", "few", 3)) == [wanted[:3], wanted[3:]]
    for n in range(5):
        own.engine.create_namespace(f"b{n}")
    assert _names(_pages(own, "/namespaces", "few", 1)) == [["acme"]]


@pytest.mark.parametrize("path", ["/namespaces", "/namespaces/acme/collections", "/keys"])
def test_a_page_has_bounds(served: World, path: str) -> None:
    for limit in ("0", "1001", "-1", "x", "\u0661"):
        refused(served.request("GET", path, params={"limit": limit}), "/limit")
    for cursor in ("a b", "x" * 65, "\0", "/"):
        refused(served.request("GET", path, params={"cursor": cursor}), "/cursor")
    assert served.request("GET", path, params={"cursor": "zzzz"}).json()["next_cursor"] is None


def test_a_list_ends_where_its_last_page_is_full(own: World) -> None:
    for name in ("x", "y"):
        own.engine.create_namespace(name)
    assert _names(_pages(own, "/namespaces")) == [["acme", "other"], ["x", "y"]]
