"""A LlamaIndex object's async client, one for each event loop: its connections belong to one.

Elsewhere retries hide this: the first attempt in another loop fails. Ours are off.
"""

import asyncio
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T", bound=Any)


class PerLoop(Generic[T]):
    """Copies of an LLM or embedding; all but the first with a new async client."""

    def __init__(self) -> None:
        self._copies: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()
        self._used = False

    def here(self, owner: T) -> T:
        """The copy for the running loop; its callbacks are ``owner``'s."""
        loop = asyncio.get_running_loop()
        if loop not in self._copies:
            self._copies[loop] = _reconnected(owner) if self._used else owner.model_copy()
            self._used = True
        twin: T = self._copies[loop]
        twin.callback_manager = owner.callback_manager
        return twin


def _reconnected(owner: T) -> T:
    twin: T = owner.model_copy()
    private = twin.__pydantic_private__
    if private is None or private.get("_aclient") is None:
        return twin
    if hasattr(twin, "_get_aclient"):
        private["_aclient"] = None  # made again on its first use
    elif hasattr(twin, "_get_credential_kwargs"):
        kind = type(private["_aclient"])
        private["_aclient"] = kind(**twin._get_credential_kwargs(is_async=True))  # noqa: SLF001
    return twin
