"""Links to texts: whoever holds one may read one span for a while, as long as the asker could.

A link says what it opens and until when, and is signed with a secret of the store. Of the asker's
principals it holds the digest of one that the file is granted to; when that grant is revoked, the
link opens nothing.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from anyio.to_thread import run_sync
from starlette.responses import Response

from harness_core.collections.contract import (
    EVERYONE,
    AskedSpan,
    ReadSpansRequest,
    ReadSpansResult,
    SpanPart,
)
from harness_core.collections.faults import InvalidRequestError, NotFoundError
from harness_core.collections.reading_back import read_back
from harness_core.collections.store import FileInfo
from harness_integrations.engine.service.calls import ABSENT, Call

PATH: Final = "/spans/{token}"
_NAME: Final = "links"
_MAC_BYTES: Final = 32


def linked(call: Call, asked: ReadSpansRequest, *, request_id: str) -> ReadSpansResult:
    """The parts of the spans, with a link in place of each text."""
    result = call.collection.read_spans(asked, request_id=request_id)
    parts = [_with_link(call, part, asked) for part in result.parts]
    return result.model_copy(update={"parts": parts})


def _with_link(call: Call, part: SpanPart, asked: ReadSpansRequest) -> SpanPart:
    if part.error is not None:
        return part
    try:
        file = call.collection.file(part.span.file_id)
    except NotFoundError:  # deleted since it was read
        return SpanPart(span=part.span, error="not_found")
    settings, secret = call.service.settings, call.engine.store.secret(_NAME)
    expires = int(settings.clock.wall() + settings.link_seconds)
    opens = {
        "in": [call.namespace.id, call.collection.id], "span": part.span.wire(), "until": expires,
        "by": _digest(secret, _granted(file, asked.principals or ())),
    }  # fmt: skip
    base = settings.public_url or str(call.request.base_url)
    url = base.rstrip("/") + PATH.format(token=_signed(secret, opens))
    until = datetime.fromtimestamp(expires, UTC).isoformat().replace("+00:00", "Z")
    return part.model_copy(update={"url": url, "expires_at": until})


def _granted(file: FileInfo, principals: Sequence[str]) -> str:
    """One of the principals, or everyone, whom the file is granted to; "" is granted nothing."""
    mine = {*principals, EVERYONE}
    return next((one for one in file.principals if one in mine), "")


async def open_link(call: Call) -> Response:
    """The text that a link opens."""
    text = await run_sync(_text, call, call.request.path_params["token"])
    headers = {
        "content-disposition": 'attachment; filename="span.txt"',
        "content-security-policy": "default-src 'none'; sandbox",
    }
    return Response(text, media_type="text/plain", headers=headers)


def _text(call: Call, token: str) -> bytes:
    store = call.engine.store
    secret = store.secret(_NAME)
    opens = _checked(secret, token)
    if opens is None or opens["until"] <= call.service.settings.clock.wall():
        raise NotFoundError(ABSENT)
    namespace, collection = opens["in"]
    span = AskedSpan.parse(opens["span"])
    try:
        target = call.engine.namespace(namespace).collection(collection)
        granted = target.file(span.file_id).principals
        by = [one for one in granted if _digest(secret, one) == opens["by"]]
        with store.snapshot(target.id) as snapshot:
            (part,) = read_back(snapshot, [span], None if target.access_control == "off" else by)
    except (NotFoundError, InvalidRequestError):
        raise NotFoundError(ABSENT) from None
    if part.text is None:
        raise NotFoundError(ABSENT)
    return part.text.encode()


def _digest(secret: bytes, principal: str) -> str:
    return _mac(secret, b"principal\0" + principal.encode()).hex()


def _signed(secret: bytes, opens: Any) -> str:
    said = json.dumps(opens, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_mac(secret, b"link\0" + said) + said).decode().rstrip("=")


def _checked(secret: bytes, token: str) -> Any:
    """What a link opens; None for one that is not of our making."""
    try:
        whole = base64.urlsafe_b64decode(token.encode("ascii") + b"==")
    except (binascii.Error, UnicodeEncodeError):
        return None
    mac, said = whole[:_MAC_BYTES], whole[_MAC_BYTES:]
    mine = _mac(secret, b"link\0" + said)
    return json.loads(said) if hmac.compare_digest(mac, mine) else None


def _mac(secret: bytes, said: bytes) -> bytes:
    return hmac.new(secret, said, hashlib.sha256).digest()
