"""What an answer over a collection may fail with, each with its code and its HTTP status.

CollectionFault (HarnessError)
    InvalidRequestError  > FilterError      400
    ForbiddenError 403   NotFoundError 404   AlreadyExistsError 409
    CollectionEmptyError 409                 CollectionNotReadyError 409
    IdempotencyConflictError 409
    TemporarilyUnavailableError 503          FenceError 500
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from harness_core.errors import HarnessError


class CollectionFault(HarnessError, code="internal_error"):
    """A request that was not answered: ``code``, ``status``, ``retryable``, ``details``.

    ``request_id`` is the service's name of it, None in the library. A message never repeats what
    the request held.
    """

    status: ClassVar[int] = 500
    request_id: str | None = None

    def __init__(
        self, message: str, *, retryable: bool = False, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.details: dict[str, Any] = dict(details or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), str(self), self.__dict__)

    def envelope(self, request_id: str) -> dict[str, Any]:
        """The error as the body of a response."""
        return {
            "error": {
                "code": self.code,
                "message": str(self),
                "request_id": request_id,
                "retryable": self.retryable,
                "details": self.details,
            }
        }


def _again(kind: type[CollectionFault], message: str, state: dict[str, Any]) -> CollectionFault:
    fault = kind.__new__(kind, message)
    fault.args = (message,)
    fault.__dict__.update(state)
    return fault


class InvalidRequestError(CollectionFault, code="invalid_request"):
    """A field or a rule of the request is broken; ``details.pointer`` is where (JSON pointer)."""

    status = 400

    def __init__(self, message: str, pointer: str | None = None) -> None:
        super().__init__(message, details={} if pointer is None else {"pointer": pointer})


class FilterError(InvalidRequestError, code="invalid_filter"):
    """A filter that the grammar or the collection's fields do not allow.

    ``field`` is the field of the faulty comparison, None for a fault of the tree. ``reason`` is
    ``not_listed``, ``op_not_allowed`` or ``invalid_value``, None for a fault of shape.
    """

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        reason: str | None = None,
        pointer: str = "/filter",
    ) -> None:
        super().__init__(message, pointer)
        self.field = field
        self.reason = reason
        self.details |= {k: v for k, v in (("field", field), ("reason", reason)) if v is not None}


class ForbiddenError(CollectionFault, code="forbidden"):
    """The key sees the resource and may not do this."""

    status = 403


class UnauthenticatedError(CollectionFault, code="unauthenticated"):
    """No key, or one that is wrong, expired or revoked; which of these is never said."""

    status = 401


class NotFoundError(CollectionFault, code="not_found"):
    """Absent, deleted, or outside what may be seen; which of these is never said."""

    status = 404


class AlreadyExistsError(CollectionFault, code="already_exists"):
    """A name that is taken."""

    status = 409


class IdempotencyConflictError(CollectionFault, code="idempotency_conflict"):
    """An idempotency key that stands for another request, or for one still at work (retryable)."""

    status = 409

    def __init__(self, *, running: bool) -> None:
        super().__init__(
            "the request with this idempotency key is still being done"
            if running
            else "this idempotency key stands for another request; choose a new one",
            retryable=running,
            details={"retry_after_seconds": 1} if running else {},
        )


class CollectionEmptyError(CollectionFault, code="collection_empty"):
    """No living file to answer from."""

    status = 409

    def __init__(self) -> None:
        super().__init__("the collection holds no file; add one and wait until it is ready")


class CollectionNotReadyError(CollectionFault, code="collection_not_ready"):
    """No file is ready. Retryable while one is being processed (``retry_after_seconds``)."""

    status = 409

    def __init__(self, retry_after: int | None) -> None:
        super().__init__(
            "every file of the collection failed; look at the errors of its files"
            if retry_after is None
            else "the files of the collection are still being processed",
            retryable=retry_after is not None,
            details={} if retry_after is None else {"retry_after_seconds": retry_after},
        )


class TemporarilyUnavailableError(CollectionFault, code="temporarily_unavailable"):
    """No answer now; ``retryable`` says whether asking again can help.

    ``details.reason`` is budget, deadline, capacity, rate_limit, store, source or
    model_unavailable.
    """

    status = 503

    def __init__(self, reason: str, *, retryable: bool, retry_after: int | None = None) -> None:
        later = {} if retry_after is None else {"retry_after_seconds": retry_after}
        super().__init__(
            f"no answer could be given: {reason.replace('_', ' ')}",
            retryable=retryable,
            details={"reason": reason, **later},
        )


class FenceError(CollectionFault, code="internal_error"):
    """A ranker returned text outside what the request may see. Nothing was sent."""
