"""A provider's exception, read as a failed reply."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness_core.messages import Reply, clean_text
from harness_integrations.shared.usage import as_mapping, read_usage

_NEVER_LEFT = frozenset({"ConnectError", "ConnectTimeout", "ConnectionRefusedError"})


@dataclass(frozen=True, slots=True)
class Broken:
    """The last piece of a stream whose provider raised."""

    error: Exception


def of_stream(reply: Reply, pieces: Iterable[Any]) -> Reply:
    """The reply that the pieces of a stream make, failed where its provider raised."""
    broken = next((piece for piece in pieces if isinstance(piece, Broken)), None)
    if broken is None:
        return reply
    return failed_reply(broken.error, text=reply.text, usage=reply.usage)


def failed_reply(error: Exception, **known: Any) -> Reply:
    """The failed reply of a request whose client raised; the exception travels as ``cause``."""
    return Reply.failed(**{**failure_facts(error), **_paid(error), **known})


def cut_reply(error: Exception) -> Reply | None:
    """The cut-off reply that OpenAI's SDK has in hand when it raises since JSON is not whole.

    None where an exception carries none.
    """
    choices = as_mapping(getattr(error, "completion", None)).get("choices") or [{}]
    text = as_mapping(choices[0].get("message")).get("content")
    return Reply(ok=True, text=text.strip(), **_paid(error)) if text and text.strip() else None


def _paid(error: Exception) -> dict[str, Any]:
    completion = as_mapping(getattr(error, "completion", None))
    if not completion.get("usage"):
        return {}
    return {
        "usage": read_usage(completion["usage"]),
        "finish_reason": "length",
        "served_model": completion.get("model"),
    }


def failure_facts(error: Exception) -> dict[str, Any]:
    """error, status (0: none was answered), retryable, sent and cause of a failed request."""
    status = status_of(error)
    never_left = status == 0 and any(type(one).__name__ in _NEVER_LEFT for one in _chain(error))
    retryable = getattr(error, "is_retryable", status == 429 or status >= 500)
    return {
        "error": clean_text(f"{type(error).__name__}: {error}".removesuffix(": ")),
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
