"""Keys: scopes, revocation, and that nothing kept can be used."""

import pickle
import sqlite3
from pathlib import Path

import pytest

from harness_core import BadSettingError
from harness_core.collections import Collections, KeyGrant, Keys
from harness_core.collections.faults import (
    CollectionNotReadyError,
    FilterError,
    InvalidRequestError,
    TemporarilyUnavailableError,
    UnauthenticatedError,
)
from harness_core.collections.keys import pepper_in
from harness_core.collections.times import now_us
from tests.support.threads import at_once


def test_a_key_is_known_by_its_secret_until_it_is_revoked(engine: Collections) -> None:
    new = engine.keys.create("cluster")
    assert engine.keys.check(new.secret).id == new.id
    assert new.secret not in repr(new)
    engine.keys.revoke(new.id)
    with pytest.raises(UnauthenticatedError):
        engine.keys.check(new.secret)
    assert [key.revoked for key in engine.keys.list()] == [True]


def test_every_bad_token_fails_alike(engine: Collections) -> None:  # SEC53
    new = engine.keys.create("cluster")
    expired = engine.keys.create("cluster", expires_us=now_us() - 1)
    other = Keys(engine.store, b"another pepper").create("cluster")
    bad = [
        "", "x", new.secret[:-1], new.secret + "x", new.secret[:-1] + "é", "é" * 40,
        "x" * 100_000, "gek_0000000000_" + "a" * 43, expired.secret, other.secret,
    ]  # fmt: skip
    said = set()
    for token in bad:
        with pytest.raises(UnauthenticatedError) as caught:
            engine.keys.check(token)
        said.add(str(caught.value))
    assert len(said) == 1


def test_a_scoped_key_sees_and_does_what_it_was_granted(engine: Collections) -> None:
    space = engine.namespace("acme")
    docs = space.collection("docs")
    grant = KeyGrant(namespace_id=space.id, collection_id=docs.id, actions=("query",))
    key = engine.keys.check(engine.keys.create("scoped", [grant]).secret)
    assert key.sees(space.id)
    assert key.may(space.id, docs.id, "query")
    assert not key.may(space.id, docs.id, "write")
    assert not key.sees(space.id, space.collection("secure").id)
    assert not key.sees("ns_other")
    space.delete_collection("docs")  # SEC54: a name made again is another collection
    again = space.create_collection("docs")
    assert not key.sees(space.id, again.id)


def test_a_scoped_key_needs_grants_of_known_actions(engine: Collections) -> None:
    grant = KeyGrant(namespace_id="n", collection_id="*", actions=("fly",))  # type: ignore[arg-type]  # the fault under test
    for kind, grants in (("scoped", []), ("scoped", [grant]), ("root", [])):
        with pytest.raises(InvalidRequestError):
            engine.keys.create(kind, grants)  # type: ignore[arg-type]  # the fault under test


def test_the_database_holds_no_usable_secret(engine: Collections) -> None:  # SEC55
    new = engine.keys.create("cluster")
    connection = sqlite3.connect(str(engine._path))
    dump = "\n".join(connection.iterdump())
    connection.close()
    assert new.secret.split("_", 2)[2] not in dump


def test_faults_survive_pickling() -> None:
    for fault in (
        FilterError("x", field="f", reason="not_listed"),
        CollectionNotReadyError(30),
        TemporarilyUnavailableError("budget", retryable=False),
    ):
        again = pickle.loads(pickle.dumps(fault))  # noqa: S301 - our own bytes
        assert again.envelope("req_x") == fault.envelope("req_x")
        assert type(again) is type(fault)


def test_a_pepper_is_made_once_by_whoever_comes_first(tmp_path: Path) -> None:
    file, found = tmp_path / "pepper", list[bytes]()
    assert at_once([lambda: found.append(pepper_in(file))] * 8) == []
    assert set(found) == {file.read_bytes()}
    assert list(tmp_path.iterdir()) == [file]
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"too short"])
def test_a_pepper_is_long_enough_to_be_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pepper").write_bytes(content)
    with pytest.raises(BadSettingError, match="shorter than 16 bytes"):
        pepper_in(tmp_path / "pepper")
    with pytest.raises(BadSettingError, match="cannot be read"):
        pepper_in(tmp_path / "nowhere" / "pepper")
