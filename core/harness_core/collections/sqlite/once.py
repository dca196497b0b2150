"""Requests that are done once: what they were, and how they were answered."""

import json
from collections.abc import Mapping
from typing import Any

from harness_core.collections.rows import REPLIES_KEPT_US, replied
from harness_core.collections.sqlite.database import Database
from harness_core.collections.times import now_us


class Once:
    """What was taken up under a key, until it is forgotten."""

    database: Database

    def begin_once(
        self, owner: str, key: str, digest: str, lease_seconds: float
    ) -> Mapping[str, Any] | None:
        """Take up a request that must be done once: None, or the reply it was given before."""
        now = now_us()
        with self.database.write() as connection:
            connection.execute("DELETE FROM once WHERE until_us <= ?", (now,))
            row = connection.execute(
                "SELECT digest, reply FROM once WHERE owner = ? AND key = ?", (owner, key)
            ).fetchone()
            if row is None:
                until = now + int(lease_seconds * 1_000_000)
                connection.execute(
                    "INSERT INTO once VALUES (?, ?, ?, NULL, ?)", (owner, key, digest, until)
                )
                return None
        return replied(row, digest)

    def end_once(self, owner: str, key: str, reply: Mapping[str, Any] | None) -> None:
        """Keep the reply of a request that was taken up; None: it failed and may be tried anew."""
        with self.database.write() as connection:
            if reply is None:
                connection.execute("DELETE FROM once WHERE owner = ? AND key = ?", (owner, key))
                return
            connection.execute(
                "UPDATE once SET reply = ?, until_us = ? WHERE owner = ? AND key = ?",
                (json.dumps(reply), now_us() + REPLIES_KEPT_US, owner, key),
            )
