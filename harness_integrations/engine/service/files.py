"""The files of a collection: adding, listing, changing, deleting."""

import base64
import binascii
import json
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.to_thread import run_sync
from starlette.responses import Response

from harness_core.collections import FileInfo
from harness_core.collections.faults import FilterError, InvalidRequestError
from harness_integrations.engine.service.bodies import body_pieces, check_plain
from harness_integrations.engine.service.calls import Call, reply
from harness_integrations.engine.service.catalogue import page
from harness_integrations.engine.service.requests import FileChange, NewFile
from harness_integrations.engine.service.strict_json import parse_body

PAGE: Final = 100
PAGE_MOST: Final = 1000
_UNSET: Final = "$unset"


async def add_file(call: Call) -> Response:
    """Add a file from its text or its base64 data; acknowledged when it is stored."""
    asked = await call.body(NewFile)
    add = partial(
        call.collection.add, asked.path, _content(asked), content_type=asked.content_type,
        metadata=asked.metadata, principals=asked.principals, wait=False,
    )  # fmt: skip
    return await _added(call, add)


async def _added(call: Call, add: Callable[[], FileInfo]) -> Response:
    info = await run_sync(add)
    call.service.wake()
    return reply(info.wire(), 202)


def _content(asked: NewFile) -> bytes | str:
    if (asked.text is None) == (asked.data is None):
        raise InvalidRequestError("a file is its text or its data", "/text")
    if asked.text is not None:
        return asked.text
    try:
        return base64.b64decode(asked.data or "", validate=True)
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
        add = partial(
            call.collection.add, path, kept, content_type=_content_type(call),
            metadata=metadata, principals=principals or (), wait=False,
        )  # fmt: skip
        return await _added(call, add)


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
    """The files that match, a page at a time."""
    given = call.request.query_params
    most = _limit(given.get("limit"))
    look = partial(call.collection.files, _filter(call), after=given.get("cursor"), limit=most)
    found = await run_sync(look)
    return reply(page([one.wire() for one in found], found[-1].id if len(found) == most else None))


def _limit(given: str | None) -> int:
    if given is None:
        return PAGE
    if not given.isascii() or not given.isdigit() or not 1 <= int(given[:9]) <= PAGE_MOST:
        raise InvalidRequestError(f"limit is 1 to {PAGE_MOST}", "/limit")
    return int(given)


def _filter(call: Call) -> Any:
    given = call.request.query_params.get("filter")
    if given is None:
        return None
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        raise FilterError("the filter is not JSON") from None


async def show_file(call: Call) -> Response:
    """One file."""
    return reply((await run_sync(call.collection.file, _file(call))).wire())


async def change_file(call: Call) -> Response:
    """Change a file's metadata, grants or path."""
    asked = await call.body(FileChange)

    def change() -> FileInfo:
        merged = None
        if asked.metadata is not None:
            merged = _merged(call.collection.file(_file(call)).metadata, asked.metadata)
        return call.collection.update(
            _file(call), path=asked.path, metadata=merged, principals=asked.principals
        )

    return reply((await run_sync(change)).wire())


def _merged(stored: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    removed = given.get(_UNSET, [])
    if not isinstance(removed, list) or not all(isinstance(key, str) for key in removed):
        raise InvalidRequestError(f"{_UNSET} is a list of keys", f"/metadata/{_UNSET}")
    new = {key: value for key, value in given.items() if key != _UNSET}
    return {key: value for key, value in {**stored, **new}.items() if key not in removed}


async def delete_file(call: Call) -> Response:
    """Delete a file; nothing is answered from it from now on."""
    await run_sync(call.collection.delete, _file(call))
    return Response(status_code=204)


def _file(call: Call) -> str:
    return str(call.request.path_params["file"])
