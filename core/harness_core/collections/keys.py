"""API keys: made once, kept as a MAC, compared in constant time."""

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from harness_core.collections.faults import InvalidRequestError, NotFoundError, UnauthenticatedError
from harness_core.collections.store import Store
from harness_core.collections.times import now_us, shown
from harness_core.errors import BadSettingError

Kind = Literal["cluster", "scoped"]
Action = Literal["query", "read", "write"]
ACTIONS: Final = ("query", "read", "write")
EVERY: Final = "*"
_TOKEN_BYTES: Final = 256
PEPPER_BYTES: Final = 16
_TOKEN = re.compile(r"gek_([0-9a-z]{10})_([0-9A-Za-z_-]{43})")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGrant:
    """What a scoped key may do: actions on a collection (``*``: all) of a namespace, by id."""

    namespace_id: str
    collection_id: str
    actions: tuple[Action, ...]

    def covers(self, namespace_id: str, collection_id: str | None) -> bool:
        """Whether it is about that collection (None: about anything in the namespace)."""
        return self.namespace_id == namespace_id and (
            collection_id is None or self.collection_id in (EVERY, collection_id)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key as it is known here: never its secret."""

    id: str
    kind: Kind
    grants: tuple[KeyGrant, ...]
    created_at: str
    expires_at: str | None = None
    revoked: bool = False

    def sees(self, namespace_id: str, collection_id: str | None = None) -> bool:
        """Whether the collection (or the namespace) exists for this key."""
        return self.kind == "cluster" or any(
            grant.covers(namespace_id, collection_id) for grant in self.grants
        )

    def may(self, namespace_id: str, collection_id: str, action: Action) -> bool:
        """Whether the key may do ``action`` on the collection."""
        return self.kind == "cluster" or any(
            action in grant.actions
            for grant in self.grants
            if grant.covers(namespace_id, collection_id)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key just made. ``secret`` is shown this once."""

    id: str
    secret: str = field(repr=False)


class Keys:
    """The keys of a store. ``pepper`` is a secret kept outside the store."""

    def __init__(self, store: Store, pepper: bytes) -> None:
        self._store = store
        self._pepper = pepper

    def create(
        self, kind: Kind, grants: Iterable[KeyGrant] = (), *, expires_us: int | None = None
    ) -> NewKey:
        """A new key.

        Raises:
            InvalidRequestError: an unknown kind or action, or a scoped key without a grant.
        """
        row, made = self._made(kind, tuple(grants), expires_us)
        self._store.add_key(row)
        return made

    def create_first(self) -> NewKey | None:
        """A cluster key where there is no key at all; None where there is one already."""
        row, made = self._made("cluster", (), None)
        return made if self._store.add_key(row, first=True) else None

    def _made(
        self, kind: Kind, listed: tuple[KeyGrant, ...], expires_us: int | None
    ) -> tuple[dict[str, Any], NewKey]:
        sound = all(set(grant.actions) <= set(ACTIONS) and grant.actions for grant in listed)
        if kind not in ("cluster", "scoped") or not sound or (kind == "scoped") != bool(listed):
            raise InvalidRequestError("a key is cluster, or scoped with its grants", "/grants")
        key_id = "".join(secrets.choice("0123456789abcdefghijklmnopqrstuvwxyz") for _ in range(10))
        secret = secrets.token_urlsafe(32)
        row = {
            "id": key_id, "kind": kind, "mac": self._mac(secret.encode()),
            "grants": [asdict(grant) for grant in listed], "created_us": now_us(),
            "expires_us": expires_us,
        }  # fmt: skip
        return row, NewKey(id=key_id, secret=f"gek_{key_id}_{secret}")

    def check(self, token: str) -> Key:
        """The live key of that token.

        Raises:
            UnauthenticatedError: malformed, unknown, wrong, expired or revoked, all alike.
        """
        found = _TOKEN.fullmatch(token) if len(token) <= _TOKEN_BYTES else None
        row = self._store.key(found[1]) if found else None
        known = bytes(row["mac"]) if row else bytes(32)
        mine = self._mac(found[2].encode() if found else b"")
        if not hmac.compare_digest(known, mine) or row is None or not _live(row):
            raise UnauthenticatedError("the key is missing or not valid")
        return _as_key(row)

    def list(self, *, after: str = "", limit: int | None = None) -> list[Key]:
        """Keys, revoked ones included, oldest first, from after the one of the id ``after`` on."""
        return [_as_key(row) for row in self._store.keys(after, limit)]

    def revoke(self, key_id: str) -> None:
        """Revoke a key at once.

        Raises:
            NotFoundError: there is none of that id.
        """
        if not self._store.revoke_key(key_id):
            raise NotFoundError("there is no such key")

    def _mac(self, secret: bytes) -> bytes:
        return hmac.new(self._pepper, secret, hashlib.sha256).digest()


def pepper_beside(path: str | os.PathLike[str]) -> bytes:
    """The pepper in the file ``<path>.pepper``, made at its first use."""
    return pepper_in(Path(f"{os.fspath(path)}.pepper"))


def pepper_in(file: Path) -> bytes:
    """The pepper in a file, made at its first use, for its owner's eyes.

    Raises:
        BadSettingError: the file can neither be read nor made, or holds less than 16 bytes.
    """
    try:
        if not file.exists():
            _make_pepper(file)
        pepper = file.read_bytes()
    except OSError as error:
        raise BadSettingError(f"the pepper in {file} cannot be read: {error.strerror}") from error
    if len(pepper) < PEPPER_BYTES:
        raise BadSettingError(f"the pepper in {file} is shorter than {PEPPER_BYTES} bytes")
    return pepper


def _make_pepper(file: Path) -> None:
    """Whole or not at all, for several processes may start at once."""
    descriptor, made = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(descriptor, "wb") as new:
        new.write(secrets.token_bytes(32))
    with contextlib.suppress(FileExistsError):  # another process was first
        os.link(made, file)
    Path(made).unlink()


def _live(row: Mapping[str, Any]) -> bool:
    expires = row["expires_us"]
    return row["revoked_us"] is None and (expires is None or expires > now_us())


def _as_key(row: Mapping[str, Any]) -> Key:
    grants = (KeyGrant(**{**one, "actions": tuple(one["actions"])}) for one in row["grants"])
    return Key(
        id=row["id"],
        kind=row["kind"],
        grants=tuple(grants),
        created_at=shown(row["created_us"]),
        expires_at=None if row["expires_us"] is None else shown(row["expires_us"]),
        revoked=row["revoked_us"] is not None,
    )
