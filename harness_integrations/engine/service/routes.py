"""Every path of the service, with what its methods do and who may have it done."""

from collections.abc import Mapping
from typing import Final

from harness_core.collections.contract import AnswerRequest, ReadSpansRequest, SearchRequest
from harness_integrations.engine.service import (
    about,
    answering,
    catalogue,
    events,
    files,
    keys,
    links,
)
from harness_integrations.engine.service.calls import Operation
from harness_integrations.engine.service.pages import PARAMETERS
from harness_integrations.engine.service.requests import (
    FileChange,
    NewCollection,
    NewFields,
    NewFile,
    NewKey,
    NewNamespace,
)

SPACES: Final = "/namespaces"
SPACE: Final = "/namespaces/{namespace}"
COLLECTIONS: Final = SPACE + "/collections"
COLLECTION: Final = COLLECTIONS + "/{collection}"
FILES: Final = COLLECTION + "/files"

Operations = Mapping[str, Operation]

API: Final[Mapping[str, Operations]] = {
    COLLECTION + ":answer": {
        "POST": Operation(
            handler=answering.answer,
            permission="query",
            summary="Answer from the files of a collection, with citations",
            body=AnswerRequest,
            reply="AnswerResult",
            faults=("400", "403", "409", "413", "503"),
            ours=False,
        )
    },
    COLLECTION + ":search": {
        "POST": Operation(
            handler=answering.search,
            permission="query",
            summary="The places that fit a question best",
            body=SearchRequest,
            reply="SearchResult",
            faults=("409", "413", "503"),
        )
    },
    COLLECTION + ":read-spans": {
        "POST": Operation(
            handler=answering.read_spans,
            permission="query",
            summary="The text at given places",
            body=ReadSpansRequest,
            reply="ReadSpansResult",
            faults=("413", "503"),
        )
    },
    links.PATH: {
        "GET": Operation(
            handler=links.open_link,
            permission="open",
            summary="The text that a link of read-spans opens",
            reply="Text",
            faults=("503",),
        )
    },
    SPACES: {
        "GET": Operation(
            handler=catalogue.list_namespaces,
            parameters=PARAMETERS,
            permission="key",
            summary="The namespaces that the key sees",
            reply="NamespacePage",
        ),
        "POST": Operation(
            handler=catalogue.create_namespace,
            once=True,
            permission="cluster",
            summary="Create a namespace",
            body=NewNamespace,
            reply="Namespace",
            status=201,
            faults=("409", "413"),
        ),
    },
    SPACE: {
        "GET": Operation(
            handler=catalogue.show_namespace,
            permission="key",
            summary="One namespace",
            reply="Namespace",
        ),
        "DELETE": Operation(
            handler=catalogue.delete_namespace,
            once=True,
            permission="cluster",
            summary="Delete a namespace with everything in it",
            status=204,
        ),
    },
    COLLECTIONS: {
        "GET": Operation(
            handler=catalogue.list_collections,
            parameters=PARAMETERS,
            permission="key",
            summary="The collections that the key sees",
            reply="CollectionPage",
        ),
        "POST": Operation(
            handler=catalogue.create_collection,
            once=True,
            permission="cluster",
            summary="Create a collection",
            body=NewCollection,
            reply="Collection",
            status=201,
            faults=("409", "413"),
        ),
    },
    COLLECTION: {
        "GET": Operation(
            handler=catalogue.show_collection,
            permission="read",
            summary="One collection: its state, its files by status, its fields",
            reply="Collection",
        ),
        "DELETE": Operation(
            handler=catalogue.delete_collection,
            once=True,
            permission="cluster",
            summary="Delete a collection with its files",
            status=204,
        ),
    },
    COLLECTION + "/metadata-fields": {
        "PUT": Operation(
            handler=catalogue.set_fields,
            once=True,
            permission="write",
            summary="Replace the metadata fields that filters may name",
            body=NewFields,
            reply="Fields",
            faults=("413",),
        )
    },
    FILES + ":upload": {
        "PUT": Operation(
            handler=files.upload_file,
            once=True,
            permission="write",
            summary="Add a file from the bytes of the body",
            parameters=frozenset({"path", "principals", "metadata"}),
            reply="File",
            status=202,
            faults=("413",),
        )
    },
    FILES: {
        "GET": Operation(
            handler=files.list_files,
            permission="read",
            summary="The files, a page at a time",
            parameters=PARAMETERS | {"filter"},
            reply="FilePage",
        ),
        "POST": Operation(
            handler=files.add_file,
            once=True,
            permission="write",
            summary="Add a file from its text, its base64 data or an address",
            body=NewFile,
            reply="File",
            status=202,
            faults=("413",),
        ),
    },
    FILES + "/{file}": {
        "GET": Operation(
            handler=files.show_file, permission="read", summary="One file", reply="File"
        ),
        "PATCH": Operation(
            handler=files.change_file,
            once=True,
            permission="write",
            summary="Change a file's metadata, grants or path",
            body=FileChange,
            reply="File",
            faults=("409", "413"),
        ),
        "DELETE": Operation(
            handler=files.delete_file,
            once=True,
            permission="write",
            summary="Delete a file",
            status=204,
        ),
    },
    COLLECTION + "/events": {
        "GET": Operation(
            handler=events.stream_events,
            permission="read",
            summary="What happens in the collection, as server-sent events",
            reply="Event",
        )
    },
    "/keys": {
        "GET": Operation(
            handler=keys.list_keys,
            parameters=PARAMETERS,
            permission="cluster",
            summary="The keys, without their secrets",
            reply="KeyPage",
        ),
        "POST": Operation(
            handler=keys.create_key,
            permission="cluster",
            summary="Make a key; its secret is told once",
            body=NewKey,
            reply="MadeKey",
            status=201,
            faults=("404", "413"),
        ),
    },
    "/keys/{key}": {
        "DELETE": Operation(
            handler=keys.revoke_key, permission="cluster", summary="Revoke a key", status=204
        )
    },
    "/info": {
        "GET": Operation(
            handler=about.info,
            permission="key",
            summary="The contract, its limits, and what is supported",
            reply="Info",
        )
    },
    "/health": {
        "GET": Operation(
            handler=about.health, permission="open", summary="Whether it lives", reply="Health"
        )
    },
    "/ready": {
        "GET": Operation(
            handler=about.ready,
            permission="open",
            summary="Whether it can serve, check by check",
            reply="Ready",
            faults=("503",),
        )
    },
}

PAGE: Final[Mapping[str, Operations]] = {
    path: {
        "GET": Operation(
            handler=about.show_page, permission="open", summary="The page", reply="Part"
        )
    }
    for path in ("/", "/page/{part}")
}
