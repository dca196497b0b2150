"""Our own events on LlamaIndex's dispatcher."""

from llama_index.core.instrumentation.events import BaseEvent


class GovernorRefusalEvent(BaseEvent):
    """A request was not sent because it could have passed a limit; ``reason`` names the limit."""

    reason: str
    label: str
    model: str
    message: str
    run_id: str

    @classmethod
    def class_name(cls) -> str:
        return "GovernorRefusalEvent"


class ReadingStartEvent(BaseEvent):
    """A reader begins to read ``chunks`` pieces of text."""

    reader: str
    question: str
    chunks: int
    run_id: str

    @classmethod
    def class_name(cls) -> str:
        return "ReadingStartEvent"


class ReadingStepEvent(BaseEvent):
    """A reader has asked ``done`` times, of at least ``total`` in the stage ``label``."""

    label: str
    done: int
    total: int
    run_id: str

    @classmethod
    def class_name(cls) -> str:
        return "ReadingStepEvent"


class ReadingEndEvent(BaseEvent):
    """A reader has answered; ``usd`` is None where a model has no price."""

    reader: str
    partial: bool
    found: bool
    calls: int
    usd: float | None
    run_id: str

    @classmethod
    def class_name(cls) -> str:
        return "ReadingEndEvent"
