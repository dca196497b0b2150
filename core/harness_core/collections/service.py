"""The collections of a store: the library behind the command line and the service."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from harness_core.client import Client
from harness_core.collections.answer_cache import AnswerCache
from harness_core.collections.asking import Engine
from harness_core.collections.collection import Collection
from harness_core.collections.deadlines import Budgets
from harness_core.collections.efforts import EFFORTS, Plan
from harness_core.collections.faults import InvalidRequestError
from harness_core.collections.ingestion.embedding import embedding_too
from harness_core.collections.ingestion.limits import Limits
from harness_core.collections.ingestion.processing import (
    Ingestion,
    Worker,
    in_a_process,
    process_next,
)
from harness_core.collections.keys import Keys, pepper_beside
from harness_core.collections.names import checked_fields, checked_name
from harness_core.collections.opening import is_database, store_at
from harness_core.collections.store import Access, NamespaceInfo, Ranker, Store
from harness_core.errors import BadSettingError, HarnessError


class Collections:
    """The collections kept in one file, at a ``postgresql://`` address, or in another ``Store``.

    ``client`` answers (None: an ``OpenAIClient``, at the first question); ``vision`` describes
    images, which it finds in ``request.payload``; ``embedder`` embeds files and questions, so that
    places are found by meaning as well as by words. ``answer_cache`` keeps answers for those who
    ask the same over the same files. ``efforts`` are the plans by effort, ``budgets``
    the clocks, ``limits`` what processing one file may take, ``ingestion`` how it is processed
    (each file in a process of its own). ``pepper`` is the secret of the keys (None: a file beside
    the store). Safe for several threads; several processes may open one file.

    Raises:
        BadSettingError: the embedder cannot embed.
        CacheError: the file is no store, or a newer one.
        MissingDepError: this SQLite has no FTS5; psycopg is not installed; with an embedder, the
            database has no pgvector.
        TemporarilyUnavailableError: the database does not answer.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Store,
        *,
        client: Client | None = None,
        vision: Client | None = None,
        embedder: Client | None = None,
        budgets: Budgets | None = None,
        efforts: Mapping[str, Plan] | None = None,
        ranker: Ranker | None = None,
        ingestion: Ingestion = in_a_process,
        limits: Limits | None = None,
        pepper: bytes | None = None,
        answer_cache: AnswerCache | None = None,
    ) -> None:
        if embedder is not None and not embedder.can_embed:
            raise BadSettingError(f"the embedder cannot embed: {type(embedder).__name__}")
        store = store_at(path) if isinstance(path, (str, os.PathLike)) else path
        if embedder is not None:
            store.require_vectors()
        limits = limits or Limits()
        self._engine = Engine(
            store=store,
            ranker=ranker or store.ranker,
            client=_openai() if client is None else client,
            vision=vision,
            budgets=budgets or Budgets(),
            efforts=efforts or EFFORTS,
            ingestion=ingestion if embedder is None else embedding_too(ingestion, embedder),
            limits=limits if embedder is None else _with_time_to_embed(limits),
            embedder=embedder,
            answer_cache=answer_cache,
        )
        self._path = path
        self._pepper = pepper

    @property
    def store(self) -> Store:
        """The store itself."""
        return self._engine.store

    @property
    def efforts(self) -> tuple[str, ...]:
        """The efforts a request may ask for."""
        return tuple(self._engine.efforts)

    @property
    def sees_images(self) -> bool:
        """Whether a question may carry an image."""
        return self._engine.vision is not None

    @property
    def keys(self) -> Keys:
        """The keys of this store.

        Raises:
            BadSettingError: there is no pepper, and no file to keep one beside.
        """
        if self._pepper is None:
            if is_database(self._path) or not isinstance(self._path, (str, os.PathLike)):
                raise BadSettingError("a store without a file asks for a pepper")
            self._pepper = pepper_beside(self._path)
        return Keys(self.store, self._pepper)

    def create_namespace(self, name: str) -> NamespaceInfo:
        """A new namespace.

        Raises:
            InvalidRequestError, AlreadyExistsError: the name is none, or taken.
        """
        return self.store.create_namespace(checked_name(name))

    def list_namespaces(self, *, after: str = "", limit: int | None = None) -> list[NamespaceInfo]:
        """Namespaces by name, from after the name ``after`` on; at most ``limit`` (None: all)."""
        return self.store.namespaces(after, limit)

    def namespace(self, ref: str) -> "Namespace":
        """The namespace of that name or id.

        Raises:
            NotFoundError: there is none.
        """
        return Namespace(self._engine, self.store.namespace(ref))

    def delete_namespace(self, ref: str) -> None:
        """Delete a namespace with its collections.

        Raises:
            NotFoundError: there is none.
        """
        self.store.delete_namespace(self.store.namespace(ref).id)

    def process(self, limit: int | None = None) -> int:
        """Process what waits, at most ``limit`` files; how many were."""
        engine, done = self._engine, 0
        while limit is None or done < limit:
            if not process_next(engine.store, engine.ingestion, engine.limits):
                break
            done += 1
        return done

    def worker(self) -> Worker:
        """A thread that processes what waits, until it is closed."""
        return Worker(self.store, self._engine.ingestion, self._engine.limits)

    def ready(self) -> dict[str, bool]:
        """What works, by name: the store, and whether the model could be asked (not that it is)."""
        return {"store": _works(self.store.check), "model": _works(self._engine.client.check)}

    def close(self) -> None:
        """Close the store."""
        self.store.close()


def _openai() -> Client:
    from harness_core.clients.openai import OpenAIClient

    return OpenAIClient()


def _works(check: Callable[[], None]) -> bool:
    try:
        check()
    except HarnessError:
        return False
    return True


def _with_time_to_embed(limits: Limits) -> Limits:
    return replace(limits, lease_seconds=limits.lease_seconds + limits.embedding_seconds)


class Namespace:
    """A namespace: names of collections are its own."""

    def __init__(self, engine: Engine, info: NamespaceInfo) -> None:
        self._engine = engine
        self.info = info
        self.id = info.id
        self.name = info.name

    def create_collection(
        self,
        name: str,
        *,
        access_control: Access = "off",
        metadata_fields: Mapping[str, str] | None = None,
    ) -> "Collection":
        """A new collection; whether access is controlled never changes later.

        Raises:
            InvalidRequestError, AlreadyExistsError: a name or field that is none, or taken.
        """
        if access_control not in ("off", "enforced"):
            raise InvalidRequestError("access control is off or enforced", "/access_control")
        info = self._engine.store.create_collection(
            self.id, checked_name(name), access_control, checked_fields(metadata_fields or {})
        )
        return Collection(self._engine, info)

    def list_collections(self, *, after: str = "", limit: int | None = None) -> list["Collection"]:
        """Collections by name, from after the name ``after`` on; at most ``limit`` (None: all)."""
        found = self._engine.store.collections(self.id, after, limit)
        return [Collection(self._engine, one) for one in found]

    def collection(self, ref: str) -> "Collection":
        """The collection of that name or id.

        Raises:
            NotFoundError: there is none in this namespace.
        """
        return Collection(self._engine, self._engine.store.collection(self.id, ref))

    def delete_collection(self, ref: str) -> None:
        """Delete a collection with its files.

        Raises:
            NotFoundError: there is none in this namespace.
        """
        self._engine.store.delete_collection(self.collection(ref).id)
