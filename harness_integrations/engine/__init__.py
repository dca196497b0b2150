"""Answers over collections by HTTP: a client of any server of the contract, and a server.

Names are loaded on first use; the service is in ``.service``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harness_integrations.shared.extras import needs

if TYPE_CHECKING:
    from harness_integrations.engine.client import EngineClient, RemoteCollection
    from harness_integrations.engine.faults import (
        MissingTextError,
        ProtocolError,
        RequestTooLargeError,
        TransportError,
        UnknownFaultError,
    )
    from harness_integrations.engine.service.app import ServiceApp
    from harness_integrations.engine.service.settings import ServiceSettings
    from harness_integrations.engine.service.sources import Sources

_HOMES = {
    "EngineClient": "client",
    "MissingTextError": "faults",
    "ProtocolError": "faults",
    "RemoteCollection": "client",
    "RequestTooLargeError": "faults",
    "ServiceApp": "service.app",
    "ServiceSettings": "service.settings",
    "Sources": "service.sources",
    "TransportError": "faults",
    "UnknownFaultError": "faults",
}

__all__ = [
    "EngineClient",
    "MissingTextError",
    "ProtocolError",
    "RemoteCollection",
    "RequestTooLargeError",
    "ServiceApp",
    "ServiceSettings",
    "Sources",
    "TransportError",
    "UnknownFaultError",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs("serve", "starlette", "uvicorn", "httpx"):
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
