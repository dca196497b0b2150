"""Where collections are kept, as commands are told it, and the clients that go with them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from harness_core import BadSettingError, OpenAIClient
from harness_core.client import Client
from harness_core.collections import Collections
from harness_core.collections.faults import TemporarilyUnavailableError
from harness_core.collections.keys import PEPPER_BYTES, pepper_in
from harness_core.collections.opening import is_database

STORE: Final = "collections.db"

PathOption = Annotated[
    str, typer.Option(help="The file that holds the collections, or a postgresql:// address.")
]
PepperOption = Annotated[
    Path | None,
    typer.Option(
        help="The file with the secret of the keys, made when absent; for a database, where "
        "HARNESS_PEPPER may hold it instead. One secret for all who serve it."
    ),
]
ModelOption = Annotated[
    str | None, typer.Option(help="An OpenAI model id, or langchain:provider:model.")
]
EmbedderOption = Annotated[
    str | None,
    typer.Option(
        help="An OpenAI embedding model id: files are found by meaning too, not by words alone."
    ),
]


def seer(model: str | None) -> Client | None:
    """The client of a ``--vision`` option.

    Raises:
        AuthError: there is no key.
    """
    return None if model is None else _checked(OpenAIClient(model))


def embedder_for(model: str | None) -> Client | None:
    """The client of an ``--embedder`` option.

    Raises:
        AuthError: there is no key.
    """
    return None if model is None else _checked(OpenAIClient(embedding_model=model))


def _checked(client: Client) -> Client:
    client.check()
    return client


def pepper_for(path: str, file: Path | None) -> bytes | None:
    """The secret of the keys; of a store in a file it is beside the store when none is given."""
    if file is not None:
        return pepper_in(file)
    if not is_database(path):
        return None
    said = os.environ.get("HARNESS_PEPPER", "").encode()
    if len(said) < PEPPER_BYTES:
        raise BadSettingError(
            "the keys of a database ask for a secret outside it: --pepper-file, or HARNESS_PEPPER "
            f"of at least {PEPPER_BYTES} characters"
        )
    return said


@contextmanager
def opened(
    path: str,
    client: Client | None = None,
    pepper: bytes | None = None,
    vision: Client | None = None,
    embedder: Client | None = None,
) -> Iterator[Collections]:
    """The collections at ``path``, closed at the end.

    Raises:
        BadSettingError: nothing answers there.
    """
    try:
        engine = Collections(path, client=client, pepper=pepper, vision=vision, embedder=embedder)
    except TemporarilyUnavailableError as error:
        raise BadSettingError(f"the store cannot be opened: {error.__cause__ or error}") from None
    try:
        yield engine
    finally:
        engine.close()
