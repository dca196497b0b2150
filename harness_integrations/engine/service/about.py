"""What the service says of itself: whether it lives, what it can do, and its page."""

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Final

from anyio.to_thread import run_sync
from starlette.responses import Response

from harness_core.collections import contract
from harness_core.collections.faults import NotFoundError, TemporarilyUnavailableError
from harness_integrations.engine.service.calls import Call, reply

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE: Final = {
    "index.html": "text/html; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
}


async def health(call: Call) -> Response:
    """It lives."""
    return reply({"status": "ok"})


async def ready(call: Call) -> Response:
    """Whether it can serve, check by check."""
    checks = await run_sync(call.engine.ready)
    if not all(checks.values()):
        reason = "model_unavailable" if checks["store"] else "store"
        fault = TemporarilyUnavailableError(reason, retryable=not checks["store"])
        fault.details["checks"] = checks
        raise fault
    return reply({"status": "ok", "checks": checks})


async def info(call: Call) -> Response:
    """The contract, its limits and what this service supports."""
    return reply(
        {
            "contract": contract.CONTRACT,
            "version": _version(),
            "efforts": list(call.engine.efforts),
            "limits": {
                "body_bytes": contract.BODY_BYTES,
                "query_chars": contract.QUERY_CHARS,
                "instructions_chars": contract.INSTRUCTIONS_CHARS,
                "history_turns": contract.HISTORY_TURNS,
                "principals": contract.PRINCIPALS,
                "upload_bytes": call.service.settings.upload_bytes,
                "answer_seconds": call.service.settings.answer_seconds,
                "image_seconds": call.service.settings.image_seconds,
            },
            "features": {
                "query_image": call.engine.sees_images,
                "search": True,
                "read_spans": True,
                "events": True,
                "uri": bool(call.service.settings.sources.hosts),
            },
        }
    )


def _version() -> str:
    try:
        return version("harness-integrations")
    except PackageNotFoundError:
        return "unknown"


async def show_page(call: Call) -> Response:
    """The page, or a part of it."""
    name = call.request.path_params.get("part", "index.html")
    if name not in _PAGE:
        raise NotFoundError("there is nothing at this path")
    headers = {
        "content-security-policy": _POLICY,
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
        "cross-origin-opener-policy": "same-origin",
        "x-frame-options": "DENY",
    }
    return Response(_part(name), media_type=_PAGE[name], headers=headers)


@lru_cache
def _part(name: str) -> bytes:
    return files("harness_integrations.engine.service").joinpath("page", name).read_bytes()
