"""A provider's exception, read as a failed reply."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness_core.messages import Reply

_NEVER_LEFT = frozenset({"ConnectError", "ConnectTimeout", "ConnectionRefusedError"})


def failed_reply(error: Exception, **known: Any) -> Reply:
    """The failed reply of a request whose client raised; the exception travels as ``cause``."""
    return Reply.failed(**failure_facts(error), **known)


def failure_facts(error: Exception) -> dict[str, Any]:
    """error, status (0: none was answered), retryable, sent and cause of a failed request."""
    status = status_of(error)
    never_left = status == 0 and any(type(one).__name__ in _NEVER_LEFT for one in _chain(error))
    retryable = getattr(error, "is_retryable", status == 429 or status >= 500)
    return {
        "error": f"{type(error).__name__}: {error}" if str(error) else type(error).__name__,
        "status": status,
        "retryable": bool(retryable),
        "sent": not never_left,
        "cause": error,
    }


def status_of(error: BaseException) -> int:
    """The HTTP status behind an exception; 0 when it carries none."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore
        response = response.get("ResponseMetadata", {})
        candidates = [response.get("HTTPStatusCode")]
    else:
        candidates = [getattr(response, "status_code", None)]
    candidates += [getattr(error, name, None) for name in ("status_code", "http_status", "code")]
    known = [one for one in candidates if isinstance(one, int) and 100 <= one < 600]
    return known[0] if known else 0


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
