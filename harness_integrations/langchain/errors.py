"""What a governed chat model raises: errors of ours that LangChain knows as model errors.

``is_retryable`` is False on all but rate limits and server faults, so retry middleware and
``with_retry(retry_if_exception_type=retry_unless_refused)`` do not ask again for what was refused.
"""

from typing import Any

from langchain_core.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelError,
    ModelInvalidRequestError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
)

from harness_core.errors import ReplayExhaustedError, ReplayMissError, RequestRefused
from harness_core.messages import Reply

_BY_STATUS: dict[int, type[ModelError]] = {
    400: ModelInvalidRequestError,
    401: ModelAuthenticationError,
    403: ModelPermissionDeniedError,
    404: ModelNotFoundError,
    422: ModelInvalidRequestError,
    429: ModelRateLimitError,
}


class GovernedRefusal(RequestRefused, ModelError, code="budget_refused"):
    """A request was not sent because it could have passed a limit; ``reason`` names the limit."""

    is_retryable = False


class GovernedReplayMiss(ReplayMissError, ModelError, code="replay_miss"):
    """A replayed model was asked for something the recording does not hold."""

    is_retryable = False


class GovernedReplayExhausted(ReplayExhaustedError, ModelError, code="replay_exhausted"):
    """A replayed model was asked more often than the recording answers."""

    is_retryable = False


def retry_unless_refused(error: BaseException) -> bool:
    """Whether asking again may help: for ``with_retry(retry_if_exception_type=...)``."""
    return bool(getattr(error, "is_retryable", True))


def as_model_error(error: BaseException) -> BaseException:
    """An error of the call path as LangChain's kind of error; any other one as it is."""
    if isinstance(error, ModelError):
        return error
    if isinstance(error, RequestRefused):
        return GovernedRefusal(*error.args)
    if isinstance(error, ReplayMissError):
        return GovernedReplayMiss(*error.args)
    if isinstance(error, ReplayExhaustedError):
        return GovernedReplayExhausted(*error.args)
    return error


def raise_failed(reply: Reply) -> None:
    """Raise what a failed reply stands for; nothing for one that succeeded.

    A provider's own exception is raised as it came; a recorded failure as LangChain's class for
    its HTTP status.

    Raises:
        GovernedRefusal: a limit refused the request.
        ModelError: the request failed, and only the record of it is left.
    """
    if reply.ok:
        return
    if reply.refused:
        raise GovernedRefusal(reply.error or "", reply.reason or "", reply.label, reply.model)
    if reply.cause is not None:
        raise reply.cause
    status = reply.status or 0
    fault: Any = _BY_STATUS.get(status, ModelAPIError if status >= 500 else ModelError)
    raise fault(reply.error or "the request failed")
