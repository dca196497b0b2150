"""What every store and its ranker must do: subclass it with fixtures ``store`` and ``ranker``."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from harness_core.collections import rows
from harness_core.collections.access import may_read
from harness_core.collections.faults import (
    AlreadyExistsError,
    IdempotencyConflictError,
    NotFoundError,
)
from harness_core.collections.filters import compile_filter
from harness_core.collections.ids import new_id
from harness_core.collections.keys import Keys, NewKey
from harness_core.collections.store import (
    Access,
    CollectionInfo,
    FileInfo,
    Piece,
    Ranker,
    Store,
    TextForm,
    Vectors,
)
from tests.collections.test_filters import FIELDS, MATCHES, RECORDS
from tests.support.threads import at_once

EVERYTHING = compile_filter(None, {})
METADATA_VECTORS = [
    vector
    for vector, (clause, _) in MATCHES.items()
    if str(clause.get("field")).startswith("metadata.")
]


def made(
    store: Store, access: Access = "off", fields: dict[str, str] | None = None
) -> CollectionInfo:
    space = store.create_namespace(new_id("n").lower())
    return store.create_collection(space.id, "docs", access, fields or {})


def added(
    store: Store,
    where: CollectionInfo,
    path: str,
    text: str = "",
    *,
    principals: Sequence[str] = (),
    metadata: dict[str, Any] | None = None,
    ready: bool = True,
    vectors: Sequence[Sequence[float]] | None = None,
) -> FileInfo:
    file = store.add_file(
        where.id, path=path, content_type="text/plain", data=text.encode(),
        metadata=metadata or {}, principals=principals,
    )  # fmt: skip
    if ready:
        claim = store.claim(60, file.id)
        assert claim is not None
        assert claim.data == text.encode()
        rows = None if vectors is None else embedded(*vectors)
        assert store.finish(claim, replace(form(text), vectors=rows))
    return file


def embedded(*rows: Sequence[float], model: str = "small") -> Vectors:
    """Rows of length 1."""
    matrix = np.asarray(rows, dtype=np.float32)
    return Vectors(model=model, rows=matrix / np.linalg.norm(matrix, axis=1, keepdims=True))


def form(text: str) -> TextForm:
    """A text cut at its blank lines."""
    pieces, start = [], 0
    for part in text.split("\n\n"):
        pieces.append(Piece(start=start, stop=start + len(part), first_page=1, last_page=2))
        start += len(part) + 2
    return TextForm(text=text, pieces=tuple(pieces))


class StoreConformance:
    """The catalogue, visibility, texts, leases, keys, and ranking inside what is visible."""

    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError

    @pytest.fixture
    def ranker(self) -> Ranker:
        raise NotImplementedError

    def test_things_are_found_by_name_and_id_until_deleted(self, store: Store) -> None:
        space = store.create_namespace("space")
        docs = store.create_collection(space.id, "docs", "off", {"team": "text"})
        assert store.namespace("space") == store.namespace(space.id) == space
        assert store.collection(space.id, "docs") == store.collection(space.id, docs.id) == docs
        assert docs.metadata_fields == {"team": "text"}
        with pytest.raises(AlreadyExistsError):
            store.create_namespace("space")
        with pytest.raises(AlreadyExistsError):
            store.create_collection(space.id, "docs", "off", {})
        added(store, docs, "/a", "text")
        store.delete_namespace(space.id)
        with pytest.raises(NotFoundError):
            store.namespace("space")
        with pytest.raises(NotFoundError), store.snapshot(docs.id):
            pass

    def test_a_file_is_told_as_it_was_added(self, store: Store) -> None:
        docs = made(store)
        file = added(store, docs, "/a", "some text", metadata={"x": [1]}, principals=["b", "a"])
        with store.snapshot(docs.id) as snapshot:
            found = snapshot.file(file.id)
            assert found is not None
            assert (found.path, found.bytes, found.status) == ("/a", 9, "ready")
            assert (found.metadata, set(found.principals)) == ({"x": [1]}, {"a", "b"})
            assert snapshot.text(file.id) == "some text"
            assert snapshot.counts() == {"ready": 1}

    def test_pieces_are_code_points_of_the_text(self, store: Store) -> None:
        docs = made(store)
        file = added(store, docs, "/a", "naïve 😀 one\n\nzwei 漢字")
        with store.snapshot(docs.id) as snapshot:
            chunks = snapshot.pieces(snapshot.visible(EVERYTHING, None))
            passages = snapshot.passages(chunks[::-1])
            assert [one.text for one in passages] == ["zwei 漢字", "naïve 😀 one"]
            assert {one.file_id for one in passages} == {file.id}
            assert [piece.start for piece in snapshot.places(file.id)] == [0, 13]

    @pytest.mark.parametrize("who", [None, [], ["p"], ["q", "r"], ["nobody"], ["P"]])
    def test_visible_files_are_those_that_may_be_read(
        self, store: Store, who: list[str] | None
    ) -> None:
        docs = made(store, "enforced", {"n": "number"})
        grants: list[list[str]] = [[], ["p"], ["p", "q"], ["*"], ["r"]]
        for number, principals in enumerate(grants):
            added(store, docs, f"/{number}", "x", principals=principals, metadata={"n": number})
        added(store, docs, "/late", "x", principals=["p", "*"], ready=False)
        clause = {"field": "metadata.n", "op": "neq", "value": 2}
        with store.snapshot(docs.id) as snapshot:
            node = compile_filter(clause, snapshot.info.metadata_fields)
            files = snapshot.visible(node, who)
            passages = snapshot.passages(snapshot.pieces(files))
            every = snapshot.files(EVERYTHING, None, 100)
            assert sorted({one.path for one in passages}) == sorted(
                file.path for file in every if may_read(file, node, who)
            )
            assert files.pieces == len(passages)

    @pytest.mark.parametrize("vector", METADATA_VECTORS)
    def test_the_filter_vectors_hold(self, store: Store, vector: str) -> None:
        docs = made(store, fields=FIELDS)
        for name, record in zip("ABC", RECORDS, strict=True):
            added(store, docs, f"/{name}", "x", metadata=dict(record["metadata"]))
        clause, expected = MATCHES[vector]
        with store.snapshot(docs.id) as snapshot:
            found = snapshot.files(compile_filter(clause, FIELDS), None, 10)
        assert "".join(sorted(file.path[1:] for file in found)) == expected

    def test_files_are_listed_in_pages(self, store: Store) -> None:
        docs = made(store)
        names = [added(store, docs, f"/{n}", "x").id for n in range(5)]
        with store.snapshot(docs.id) as snapshot:
            first = snapshot.files(EVERYTHING, None, 3)
            rest = snapshot.files(EVERYTHING, first[-1].id, 3)
        assert [file.id for file in (*first, *rest)] == sorted(names)

    def test_changes_are_seen_by_the_next_snapshot_alone(self, store: Store) -> None:  # SEC37
        docs = made(store, "enforced")
        file = added(store, docs, "/a", "x", principals=["p"])
        with store.snapshot(docs.id) as before:
            store.change_file(
                docs.id, file.id, path="/b", metadata=lambda _: {"k": 1}, principals=["q"]
            )
            assert len(before.visible(EVERYTHING, ["p"]).ids) == 1
            with store.snapshot(docs.id) as after:
                assert not after.visible(EVERYTHING, ["p"]).ids
                assert len(after.visible(EVERYTHING, ["q"]).ids) == 1
                assert after.generation > before.generation
        store.delete_file(docs.id, file.id)
        with pytest.raises(NotFoundError):
            store.delete_file(docs.id, file.id)

    def test_namespaces_and_collections_come_by_name_in_pages(self, store: Store) -> None:
        for name in ("b", "c", "a", "b-1"):
            space = store.create_namespace(name)
        for name in ("y", "x_2", "x", "z"):
            store.create_collection(space.id, name, "off", {})
        every = [one.name for one in store.namespaces()]
        assert every == ["a", "b", "b-1", "c"]
        assert [one.name for one in store.namespaces("a", 2)] == ["b", "b-1"]
        assert [one.name for one in store.namespaces("bb")] == ["c"]
        assert store.namespaces("c", 5) == []
        listed = store.collections(space.id)
        assert [one.name for one in listed] == ["x", "x_2", "y", "z"]
        assert store.collections(space.id, "x", 2) == listed[1:3]

    def test_keys_come_by_age_in_pages(self, store: Store) -> None:
        for name, made_us in (("b", 1), ("z", 2), ("a", 2), ("c", 3)):
            store.add_key({"id": name, "kind": "cluster", "mac": b"", "grants": [],
                           "created_us": made_us, "expires_us": None})  # fmt: skip
        assert [one["id"] for one in store.keys("", None)] == ["b", "a", "z", "c"]
        assert [one["id"] for one in store.keys("a", 1)] == ["z"]
        assert [one["id"] for one in store.keys("z")] == ["c"]

    def test_changes_of_one_file_do_not_lose_each_other(self, store: Store) -> None:
        docs = made(store)
        file = added(store, docs, "/a", "x", metadata={"kept": 1})

        def put_in(name: str) -> None:
            store.change_file(
                docs.id, file.id, path=None, metadata=lambda old: {**old, name: 1}, principals=None
            )

        names = [f"n{place}" for place in range(8)]
        threads = [threading.Thread(target=put_in, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with store.snapshot(docs.id) as snapshot:
            found = snapshot.file(file.id)
        assert found is not None
        assert found.metadata == dict.fromkeys(["kept", *names], 1)

    def test_a_path_is_of_one_file(self, store: Store) -> None:  # SEC13
        docs, other = made(store), made(store)
        one, two = added(store, docs, "/a", "x"), added(store, docs, "/b", "x")
        added(store, other, "/c", "x")
        nothing: dict[str, Any] = {"metadata": None, "principals": None}
        with pytest.raises(AlreadyExistsError):
            store.change_file(docs.id, two.id, path="/a", **nothing)
        assert store.change_file(docs.id, one.id, path="/a", **nothing).path == "/a"
        assert store.change_file(docs.id, one.id, path="/c", **nothing).path == "/c"
        assert store.change_file(docs.id, two.id, path="/a", **nothing).path == "/a"

    def test_a_change_that_is_refused_changes_nothing(self, store: Store) -> None:
        docs = made(store)
        file = added(store, docs, "/a", "x", metadata={"kept": 1})

        def refuse(_: Mapping[str, Any]) -> Mapping[str, Any]:
            raise NotFoundError("no")

        with pytest.raises(NotFoundError):
            store.change_file(docs.id, file.id, path="/b", metadata=refuse, principals=["q"])
        with store.snapshot(docs.id) as snapshot:
            found = snapshot.file(file.id)
        assert found is not None
        assert (found.path, found.metadata, found.principals) == ("/a", {"kept": 1}, ())

    def test_a_request_that_was_answered_is_answered_alike(self, store: Store) -> None:
        assert store.begin_once("k", "one", "digest", 60) is None
        with pytest.raises(IdempotencyConflictError) as running:
            store.begin_once("k", "one", "digest", 60)
        assert running.value.retryable
        store.end_once("k", "one", {"status": 201, "body": {"id": "x"}})
        assert store.begin_once("k", "one", "digest", 60) == {"status": 201, "body": {"id": "x"}}
        with pytest.raises(IdempotencyConflictError) as other:
            store.begin_once("k", "one", "another", 60)
        assert not other.value.retryable
        assert store.begin_once("another key", "one", "another", 60) is None

    def test_a_request_that_failed_or_was_left_may_be_tried_anew(self, store: Store) -> None:
        assert store.begin_once("k", "failed", "digest", 60) is None
        store.end_once("k", "failed", None)
        assert store.begin_once("k", "failed", "another", 60) is None
        assert store.begin_once("k", "left", "digest", 0) is None
        time.sleep(0.001)
        assert store.begin_once("k", "left", "another", 60) is None
        with pytest.raises(IdempotencyConflictError):
            store.begin_once("k", "left", "digest", 60)

    def test_of_several_at_once_one_takes_a_request_up(self, store: Store) -> None:
        told: list[str] = []

        def take() -> None:
            try:
                told.append("taken" if store.begin_once("k", "one", "d", 60) is None else "kept")
            except IdempotencyConflictError:
                told.append("running")

        threads = [threading.Thread(target=take) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(told) == ["running"] * 5 + ["taken"]

    def test_a_file_of_another_collection_is_not_there(self, store: Store) -> None:
        one, two = made(store), made(store)
        file = added(store, one, "/a", "x")
        with store.snapshot(two.id) as snapshot:
            assert snapshot.file(file.id) is None
            assert snapshot.text(file.id) is None
        with pytest.raises(NotFoundError):
            store.delete_file(two.id, file.id)

    def test_a_lease_keeps_others_away_until_it_runs_out(self, store: Store) -> None:
        docs = made(store)
        file = added(store, docs, "/a", "x", ready=False)
        held = store.claim(0.05)
        assert held is not None
        assert store.claim(60) is None
        time.sleep(0.06)
        again = store.claim(60)
        assert again is not None
        assert again.file_id == file.id
        assert not store.finish(held, form("x"))
        assert store.finish(again, form("x"))
        assert not store.fail(again, {"code": "corrupt", "message": ""})

    def test_a_file_that_ends_every_process_fails_at_last(self, store: Store) -> None:
        docs = made(store)
        file = added(store, docs, "/a", "x", ready=False)
        for _ in range(3):
            assert store.claim(0) is not None
            time.sleep(0.001)
        assert store.claim(0) is None
        with store.snapshot(docs.id) as snapshot:
            found = snapshot.file(file.id)
        assert found is not None
        assert (found.status, (found.error or {})["code"]) == ("failed", "corrupt")

    def test_events_tell_what_happened_in_order(self, store: Store) -> None:
        docs = made(store)
        file = added(store, docs, "/a", "x")
        store.delete_file(docs.id, file.id)
        added(store, docs, "/b", "x", ready=False)
        claim = store.claim(60)
        assert claim is not None
        store.fail(claim, {"code": "no_text", "message": "m"})
        events = store.events(docs.id, 0, 100)
        assert [event.type for event in events] == [
            "file.ready", "collection.ready", "file.deleted", "file.failed", "collection.failed",
        ]  # fmt: skip
        assert store.events(docs.id, events[2].seq, 1) == events[3:4]
        assert store.last_event(docs.id) == events[-1].seq
        assert store.last_event(made(store).id) == 0

    def test_the_newest_ready_version_of_a_path_lives(self, store: Store) -> None:
        docs = made(store)
        first = added(store, docs, "/a", "one", ready=False)
        second = added(store, docs, "/a", "two")
        with store.snapshot(docs.id) as snapshot:
            assert {file.id for file in snapshot.files(EVERYTHING, None, 9)} == {
                first.id,
                second.id,
            }
        claim = store.claim(60, first.id)  # the older one is ready last
        assert claim is not None
        store.finish(claim, form("one"))
        with store.snapshot(docs.id) as snapshot:
            assert [file.id for file in snapshot.files(EVERYTHING, None, 9)] == [second.id]

    def test_a_version_that_is_ready_too_late_is_told_of_before_it_goes(self, store: Store) -> None:
        docs = made(store)
        late = added(store, docs, "/a", "one", ready=False)
        kept = added(store, docs, "/a", "two")
        claim = store.claim(60, late.id)
        assert claim is not None
        assert store.finish(claim, form("one"))
        told = [(one.type, one.payload.get("file_id")) for one in store.events(docs.id, 0, 9)]
        assert told == [
            ("file.ready", kept.id), ("collection.ready", None),
            ("file.ready", late.id), ("file.deleted", late.id),
        ]  # fmt: skip

    def test_events_are_kept_until_so_many_more_are_told(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rows, "EVENTS_KEPT", 4)
        docs = made(store)
        for number in range(9):
            added(store, docs, f"/{number}", "x")
        events = store.events(docs.id, 0, 100)
        assert [one.payload["path"] for one in events] == ["/5", "/6", "/7", "/8"]
        assert store.last_event(docs.id) == events[-1].seq

    def test_a_namespace_goes_with_what_is_added_to_it_meanwhile(self, store: Store) -> None:
        spaces = [store.create_namespace(f"space{number}") for number in range(4)]
        docs = [store.create_collection(one.id, "docs", "enforced", {}) for one in spaces]
        for one in docs:
            added(store, one, "/a", "text")

        def deletion(number: int) -> Callable[[], object]:
            def delete() -> None:
                with suppress(NotFoundError):  # the other was first
                    store.delete_collection(docs[number].id)

            return delete

        def creation(number: int) -> Callable[[], object]:
            def create() -> None:
                with suppress(NotFoundError):
                    store.create_collection(spaces[number].id, "late", "enforced", {})

            return create

        works: list[Callable[[], object]] = []
        for number, space in enumerate(spaces):
            works += [partial(store.delete_namespace, space.id), deletion(number), creation(number)]
        assert at_once(works) == []
        assert store.namespaces() == []
        self.nothing_is_left(store)

    def nothing_is_left(self, store: Store) -> None:
        """Whether the tables of a store without a namespace are empty, as far as one can see."""

    def test_one_key_is_the_first(self, store: Store) -> None:
        keys = Keys(store, b"a pepper of some bytes")
        made: list[NewKey | None] = []
        assert at_once([lambda: made.append(keys.create_first())] * 6) == []
        (first,) = [one for one in made if one is not None]
        assert [one.id for one in keys.list()] == [first.id]
        assert keys.check(first.secret).kind == "cluster"
        keys.revoke(first.id)
        assert keys.create_first() is None

    def test_fields_are_read_anew_when_their_type_changes(self, store: Store) -> None:
        docs = made(store, fields={"n": "text"})
        added(store, docs, "/a", "x", metadata={"n": "7"})
        added(store, docs, "/b", "x", metadata={"n": "abc"})
        assert store.set_fields(docs.id, {"n": "number"}) == {"n": 1}
        clause = {"field": "metadata.n", "op": "gte", "value": 7}
        with store.snapshot(docs.id) as snapshot:
            node = compile_filter(clause, snapshot.info.metadata_fields)
            assert [file.path for file in snapshot.files(node, None, 9)] == ["/a"]

    def test_a_secret_is_made_once(self, store: Store) -> None:
        assert store.secret("a") == store.secret("a") != store.secret("b")

    def test_keys_are_kept_and_revoked(self, store: Store) -> None:
        row = {"id": "k", "kind": "scoped", "mac": b"\1\2", "grants": [{"a": 1}],
               "created_us": 5, "expires_us": None}  # fmt: skip
        store.add_key(row)
        found = store.key("k")
        assert found is not None
        assert {name: found[name] for name in row} == row
        assert found["revoked_us"] is None
        assert store.revoke_key("k")
        assert not store.revoke_key("other")
        assert store.key("other") is None
        revoked = [one["revoked_us"] is not None for one in store.keys("", None)]
        assert revoked == [True]

    @pytest.mark.parametrize("access", ["off", "enforced"])
    def test_ranking_stays_inside_what_is_visible(
        self, store: Store, ranker: Ranker, access: Access
    ) -> None:
        docs = made(store, access)
        added(store, docs, "/best", "pump pump pump", principals=["q"])
        added(store, docs, "/good", "the pump\n\nand gardens", principals=["p"])
        added(store, docs, "/none", "valve", principals=["p"])
        only = compile_filter({"field": "path", "op": "neq", "value": "/best"}, {})
        with store.snapshot(docs.id) as snapshot:
            files = snapshot.visible(only, ["p"] if access == "enforced" else None)
            ranked = ranker.rank(snapshot, files, "PUMPS pump", 10)
            passages = snapshot.passages([one.chunk for one in ranked])
            assert [one.text for one in passages] == ["the pump"]
            assert {one.file for one in ranked} <= files.ids
            assert ranker.rank(snapshot, files, "?!", 10) == []
            assert ranker.rank(snapshot, snapshot.visible(only, []), "pump", 10) == []

    def test_ties_go_by_path_and_place(self, store: Store, ranker: Ranker) -> None:
        docs = made(store)
        for path in ("/b", "/a"):
            added(store, docs, path, "same pump\n\nsame pump")
        with store.snapshot(docs.id) as snapshot:
            ranked = ranker.rank(snapshot, snapshot.visible(EVERYTHING, None), "pump", 3)
            found = snapshot.passages([one.chunk for one in ranked])
        assert [(one.path, one.piece.start) for one in found] == [("/a", 0), ("/a", 11), ("/b", 0)]

    def test_what_was_noted_of_a_file_is_told_when_it_is_ready(self, store: Store) -> None:
        docs = made(store)
        file = added(store, docs, "/a", "one", ready=False)
        claim = store.claim(60, file.id)
        assert claim is not None
        store.finish(claim, replace(form("one"), notes={"unread_pages": [3]}))
        ready = store.events(docs.id, 0, 1)[0]
        about = {"file_id": file.id, "path": "/a"}
        assert ready.payload == {**about, "notes": {"unread_pages": [3]}}

    def test_readers_and_writers_never_see_half_a_change(
        self, store: Store, ranker: Ranker
    ) -> None:  # AC85
        docs = made(store)
        errors: list[BaseException] = []
        over = threading.Event()

        def look() -> None:
            try:
                while not over.is_set():
                    with store.snapshot(docs.id) as snapshot:
                        files = snapshot.visible(EVERYTHING, None)
                        ranked = ranker.rank(snapshot, files, "pump", 100)
                        passages = snapshot.passages([one.chunk for one in ranked])
                        assert len(passages) == len(ranked) == files.pieces
            except BaseException as error:  # noqa: BLE001 - told to the test below
                errors.append(error)

        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(12):
            file = added(store, docs, f"/{number % 4}", "a pump\n\nthe pump")
            if number % 3 == 0:
                store.delete_file(docs.id, file.id)
        over.set()
        for thread in threads:
            thread.join()
        assert errors == []


class VectorConformance:
    """What has vectors is found by them; a store may lack this where its database does."""

    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError

    def test_the_nearest_pieces_are_found_inside_what_is_visible(self, store: Store) -> None:
        docs = made(store, "enforced")
        added(store, docs, "/best", "best", principals=["q"], vectors=[[1, 0]])
        added(store, docs, "/good", "near\n\nfar", principals=["p"], vectors=[[3, 4], [0, 1]])
        added(store, docs, "/none", "without", principals=["p"])
        with store.snapshot(docs.id) as snapshot:
            files = snapshot.visible(EVERYTHING, ["p"])
            ranked = snapshot.nearest(files, embedded([1, 0]), 10)
            assert [one.score for one in ranked] == pytest.approx([0.6, 0])
            assert {one.file for one in ranked} <= files.ids
            texts = [one.text for one in snapshot.passages([one.chunk for one in ranked])]
            assert texts == ["near", "far"]
            assert snapshot.nearest(files, embedded([1, 0]), 1) == ranked[:1]
            nothing = snapshot.visible(EVERYTHING, [])
            assert snapshot.nearest(nothing, embedded([1, 0]), 10) == []

    def test_equally_near_pieces_go_by_path_and_place(self, store: Store) -> None:
        docs = made(store)
        same: list[list[float]] = [[2, 1], [2, 1]]
        for path in ("/c", "/a", "/b"):
            added(store, docs, path, "one\n\ntwo", vectors=same)
        with store.snapshot(docs.id) as snapshot:
            files = snapshot.visible(EVERYTHING, None)
            ranked = snapshot.nearest(files, embedded([1, 1]), 5)
            found = snapshot.passages([one.chunk for one in ranked])
        places = [("/a", 0), ("/a", 5), ("/b", 0), ("/b", 5), ("/c", 0)]
        assert [(one.path, one.piece.start) for one in found] == places

    def test_vectors_of_several_models_live_side_by_side(self, store: Store) -> None:
        docs = made(store)
        file = added(store, docs, "/a", "one\n\ntwo", vectors=[[1, 0], [0, 1]])
        bare = added(store, docs, "/b", "three")
        with store.snapshot(docs.id) as before:
            assert before.unembedded("small", "", 9) == [bare.id]
            assert before.unembedded("large", "", 9) == sorted([file.id, bare.id])
            assert before.unembedded("large", min(file.id, bare.id), 9) == [max(file.id, bare.id)]
        large = embedded([0, 0, 1], [0, 1, 0], model="large")
        assert store.add_vectors(docs.id, file.id, large)
        with pytest.raises(ValueError, match="2 pieces"):
            store.add_vectors(docs.id, file.id, embedded([1, 0, 0], model="large"))
        with store.snapshot(docs.id) as after:
            assert after.generation > before.generation
            files = after.visible(EVERYTHING, None)
            small = after.nearest(files, embedded([1, 0]), 1)[0].chunk
            big = after.nearest(files, embedded([0, 0, 1], model="large"), 1)[0].chunk
            assert small == big
            assert after.nearest(files, embedded([1, 0], model="large"), 9) == []
            chunks = after.pieces(files)
            assert {c: row.tolist() for c, row in after.vectors(chunks, "large").items()} == {
                chunks[0]: [0, 0, 1], chunks[1]: [0, 1, 0],
            }  # fmt: skip
            assert after.vectors(chunks[1:2], "small")[chunks[1]].tolist() == [0, 1]
            assert after.vectors(chunks, "other") == {}

    def test_vectors_go_with_their_file(self, store: Store) -> None:
        docs = made(store)
        file = added(store, docs, "/a", "one", vectors=[[1, 0]])
        waiting = added(store, docs, "/b", "two", ready=False)
        store.delete_file(docs.id, file.id)
        assert not store.add_vectors(docs.id, file.id, embedded([1, 0]))
        assert not store.add_vectors(docs.id, waiting.id, embedded([1, 0]))
        with store.snapshot(docs.id) as snapshot:
            files = snapshot.visible(EVERYTHING, None)
            assert snapshot.nearest(files, embedded([1, 0]), 9) == []
            assert snapshot.unembedded("small", "", 9) == []
