"""The files of a collection: adding, listing, changing, deleting."""

import base64
import binascii
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio
from anyio.to_thread import run_sync
from starlette.responses import Response

from harness_core.collections import FileInfo
from harness_core.collections.faults import FilterError, InvalidRequestError
from harness_integrations.engine.service.bodies import body_pieces, check_plain
from harness_integrations.engine.service.calls import Call, reply
from harness_integrations.engine.service.pages import window_of
from harness_integrations.engine.service.requests import FileChange, NewFile
from harness_integrations.engine.service.running import bounded
from harness_integrations.engine.service.sources import fetch
from harness_integrations.engine.service.strict_json import parse_body

Content: TypeAlias = str | bytes | Path
_UNSET: Final = "$unset"


async def add_file(call: Call) -> Response:
    """Add a file from its text, its base64 data or an address; acknowledged when it is stored."""
    asked = await call.body(NewFile)
    if sum(one is not None for one in (asked.text, asked.data, asked.uri)) != 1:
        raise InvalidRequestError("a file is its text, its data or its uri", "/text")
    if asked.uri is not None:
        return await call.done_once(partial(_fetched, call, asked, asked.uri))
    content = _decoded(asked.data) if asked.text is None else asked.text
    return await call.write(_adding(call, asked, content, asked.content_type), 202)


async def _fetched(call: Call, asked: NewFile, uri: str) -> Response:
    settings = call.service.settings
    with tempfile.TemporaryDirectory(prefix="harness-fetch-") as folder:
        kept = Path(folder, "body")
        kind = await bounded(
            partial(fetch, uri, kept, settings.sources),
            seconds=settings.sources.seconds, receive=call.request.receive, clock=settings.clock,
        )  # fmt: skip
        add = _adding(call, asked, kept, asked.content_type or kind)
        return reply(await call.written(add), 202)


def _adding(call: Call, asked: NewFile, content: Content, kind: str | None) -> Callable[[], Any]:
    def add() -> Any:
        info = call.collection.add(
            asked.path, content, content_type=kind, metadata=asked.metadata,
            principals=asked.principals, wait=False,
        )  # fmt: skip
        call.service.wake()
        return info.wire()

    return add


def _decoded(data: str | None) -> bytes:
    try:
        return base64.b64decode(data or "", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequestError("data is base64", "/data") from None


async def upload_file(call: Call) -> Response:
    """Add a file from the bytes of the body, streamed to disk as they come."""
    request = call.request
    path = request.query_params.get("path")
    if path is None:
        raise InvalidRequestError("the query parameter path is required", "/path")
    principals = _json_parameter(call, "principals", list)
    metadata = _json_parameter(call, "metadata", dict)
    check_plain(request.headers)
    settings = call.service.settings
    with tempfile.TemporaryDirectory(prefix="harness-upload-") as folder:
        kept = Path(folder, "body")
        async with await anyio.open_file(kept, "wb") as file:
            async for piece in body_pieces(
                request.headers, request.receive, settings.upload_bytes, settings
            ):
                await file.write(piece)
        asked = NewFile.model_construct(path=path, metadata=metadata, principals=principals or [])
        return await call.write(_adding(call, asked, kept, _content_type(call)), 202)


def _content_type(call: Call) -> str | None:
    given = call.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return None if given in ("", "application/octet-stream") else given


def _json_parameter(call: Call, name: str, kind: type) -> Any:
    given = call.request.query_params.get(name)
    if given is None:
        return None
    value = parse_body(given.encode("utf-8", "surrogatepass"))
    if not isinstance(value, kind):
        raise InvalidRequestError(f"{name} is a JSON {kind.__name__}", f"/{name}")
    return value


async def list_files(call: Call) -> Response:
    """The files that match, by id, a page at a time."""
    window, wanted = window_of(call), _filter(call)
    look = partial(call.collection.files, wanted, after=window.after, limit=window.limit + 1)
    return reply(window.page(await run_sync(look), attrgetter("id"), FileInfo.wire))


def _filter(call: Call) -> Any:
    given = call.request.query_params.get("filter")
    if given is None:
        return None
    try:
        return parse_body(given.encode("utf-8", "surrogatepass"))
    except InvalidRequestError:
        raise FilterError("the filter is not JSON") from None


async def show_file(call: Call) -> Response:
    """One file."""
    return reply((await run_sync(call.collection.file, _file(call))).wire())


async def change_file(call: Call) -> Response:
    """Change a file's metadata, grants or path."""
    asked = await call.body(FileChange)
    merged = None if asked.metadata is None else partial(_merged, given=asked.metadata)

    def change() -> Any:
        return call.collection.update(
            _file(call), path=asked.path, metadata=merged, principals=asked.principals
        ).wire()

    return await call.write(change)


def _merged(stored: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    removed = given.get(_UNSET, [])
    if not isinstance(removed, list) or not all(isinstance(key, str) for key in removed):
        raise InvalidRequestError(f"{_UNSET} is a list of keys", f"/metadata/{_UNSET}")
    new = {key: value for key, value in given.items() if key != _UNSET}
    return {key: value for key, value in {**stored, **new}.items() if key not in removed}


async def delete_file(call: Call) -> Response:
    """Delete a file; nothing is answered from it from now on."""
    return await call.write(partial(call.collection.delete, _file(call)))


def _file(call: Call) -> str:
    return str(call.request.path_params["file"])
