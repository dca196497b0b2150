"""Any function as a client: another library, a local model, an in-house gateway."""

import uuid
from collections.abc import Callable
from typing import Any

from harness_core.clients._handlers import HandlerClient


class CallableClient(HandlerClient):
    """Sends by calling ``fn(messages, params)``, which returns text, a ``Reply`` or a mapping.

    ``messages`` are role/content mappings; ``params`` has model, max_output (tokens), temperature,
    schema, schema_name, label, draw_index and, when set, effort. A function of one argument gets
    the messages alone; an async one serves the calls that await. ``embed(texts, params)`` returns a
    row of numbers per text. What ``fn`` raises fails its one request, which counts as billed.

    Two clients never share cached replies unless both are given the same ``id``. Models are priced
    as registered; under a spending limit one without a price is refused.

    Raises:
        BadSettingError: ``fn`` or ``embed`` is no function.
    """

    api = "callable"
    base_url = "callable://"

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        model: str = "backend-model",
        embed: Callable[..., Any] | None = None,
        embedding_model: str = "backend-embed",
        id: str | None = None,  # noqa: A002 - the name users know
    ) -> None:
        super().__init__(fn, embed)
        self.model = model
        self.embedding_model = embedding_model
        self.identity = id or uuid.uuid4().hex
