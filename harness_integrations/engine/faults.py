"""What talking to a service may fail with, beside the faults of the library itself.

CollectionFault
    RequestTooLargeError 413    MethodNotAllowedError 405 (code invalid_request)
    TransportError              no answer of the contract came back
    ProtocolError               an answer came back that breaks the contract
    MissingTextError            a place came back without its text
    UnknownFaultError           an error code that this version does not know
"""

from collections.abc import Mapping
from typing import Any

from harness_core.collections.faults import (
    AlreadyExistsError,
    CollectionEmptyError,
    CollectionFault,
    CollectionNotReadyError,
    FilterError,
    ForbiddenError,
    IdempotencyConflictError,
    InvalidRequestError,
    NotFoundError,
    TemporarilyUnavailableError,
    UnauthenticatedError,
)


class RequestTooLargeError(CollectionFault, code="request_too_large"):
    """A body over its limit; ``details.limit_bytes`` says which."""

    status = 413

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"the body is over the {limit:,} bytes of this route", details={"limit_bytes": limit}
        )


class MethodNotAllowedError(InvalidRequestError, code="invalid_request"):
    """A path that does not take this method; ``allow`` lists those it takes."""

    status = 405

    def __init__(self, allow: str) -> None:
        super().__init__(f"this path takes {allow}")
        self.allow = allow


class TransportError(CollectionFault, code="transport_error"):
    """The service could not be reached, or something before it answered in its place."""

    status = 0


class ProtocolError(CollectionFault, code="protocol_error"):
    """A response that is not what the contract says."""


class MissingTextError(CollectionFault, code="missing_text"):
    """Places without their text; ``details.reasons`` says why, ``not_found`` for a file now gone.

    Asking again can help where a file was changed or deleted in between.
    """

    status = 0

    def __init__(self, reasons: list[str]) -> None:
        super().__init__(
            f"{len(reasons)} places came without their text ({', '.join(sorted(set(reasons)))}); "
            "allow_empty_text=True takes them as they are",
            retryable="not_found" in reasons,
            details={"reasons": reasons},
        )


class UnknownFaultError(CollectionFault, code="unknown_fault"):
    """A fault whose code is not known here; ``given_code`` is what the service called it."""

    given_code = ""


_KNOWN: dict[str, type[CollectionFault]] = {
    kind.code: kind
    for kind in (
        AlreadyExistsError, CollectionEmptyError, CollectionFault, CollectionNotReadyError,
        FilterError, ForbiddenError, IdempotencyConflictError, InvalidRequestError, NotFoundError,
        RequestTooLargeError, TemporarilyUnavailableError, UnauthenticatedError,
    )
}  # fmt: skip


def fault_of(status: int, error: Mapping[str, Any]) -> CollectionFault:
    """The fault that the error of an envelope stands for: of the class the library raises."""
    code = str(error.get("code", ""))
    kind = _KNOWN.get(code, UnknownFaultError)
    details = error.get("details")
    fault = kind.__new__(kind)
    CollectionFault.__init__(
        fault,
        str(error.get("message", "")) or f"the service answered {status}",
        retryable=error.get("retryable") is True,
        details=details if isinstance(details, Mapping) else {},
    )
    more: dict[str, Any] = {"status": status, "request_id": error.get("request_id")}
    if kind is FilterError:
        more |= {name: fault.details.get(name) for name in ("field", "reason")}
    if kind is UnknownFaultError:
        more["given_code"] = code
    vars(fault).update(more)
    return fault
