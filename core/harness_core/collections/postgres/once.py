"""Requests that are done once: what they were, and how they were answered."""

import json
from collections.abc import Mapping
from typing import Any, Final

from harness_core.collections.postgres.database import Database
from harness_core.collections.rows import REPLIES_KEPT_US, replied
from harness_core.collections.times import now_us

_OVER: Final = (
    "DELETE FROM once WHERE (owner, key) IN "
    "(SELECT owner, key FROM once WHERE until_us <= %s FOR UPDATE SKIP LOCKED)"
)


class Once:
    """What was taken up under a key, until it is forgotten."""

    database: Database

    def begin_once(
        self, owner: str, key: str, digest: str, lease_seconds: float
    ) -> Mapping[str, Any] | None:
        """Take up a request that must be done once: None, or the reply it was given before."""
        now = now_us()
        with self.database.write() as connection:
            connection.execute(_OVER, (now,))
            taken = connection.execute(  # a second one waits here until the first has taken it up
                "INSERT INTO once VALUES (%s, %s, %s, NULL, %s) ON CONFLICT DO NOTHING",
                (owner, key, digest, now + int(lease_seconds * 1_000_000)),
            )
            if taken.rowcount:
                return None
            row = connection.execute(
                "SELECT digest, reply FROM once WHERE owner = %s AND key = %s", (owner, key)
            ).fetchone()
        return replied(row, digest)

    def end_once(self, owner: str, key: str, reply: Mapping[str, Any] | None) -> None:
        """Keep the reply of a request that was taken up; None: it failed and may be tried anew."""
        with self.database.write() as connection:
            if reply is None:
                connection.execute("DELETE FROM once WHERE owner = %s AND key = %s", (owner, key))
                return
            connection.execute(
                "UPDATE once SET reply = %s, until_us = %s WHERE owner = %s AND key = %s",
                (json.dumps(reply), now_us() + REPLIES_KEPT_US, owner, key),
            )
