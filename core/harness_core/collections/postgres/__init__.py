"""The store on PostgreSQL: one schema, shared by many processes; pgvector for what has vectors.

Raises:
    MissingDepError: at its import, without the packages it needs.
"""

from importlib.util import find_spec

from harness_core.errors import MissingDepError

for _name in ("psycopg", "psycopg_pool"):
    if find_spec(_name) is None:
        raise MissingDepError(
            f"a store on PostgreSQL needs {_name}: pip install 'harness-integrations[postgres]'",
            name=_name,
        )
