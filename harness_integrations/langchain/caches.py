"""Our response cache behind LangChain's cache interface, for chains that are not governed.

Where both are used, LangChain's stands in front: a hit there never reaches a governed model.
"""

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.caches import BaseCache
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, Generation

from harness_core.calls.cache import ResponseCache
from harness_core.calls.keys import content_hash
from harness_core.messages import Reply
from harness_integrations.langchain.messages import packed
from harness_integrations.shared.snapshots import plain


class TraceCache(BaseCache):
    """``set_llm_cache(TraceCache(ResponseCache("replies.sqlite3")))``.

    Entries are JSON; what is looked up is a new object each time. A message without usage is
    kept with zero usage: LangChain's mark of a hit would make it unreadable otherwise.
    """

    def __init__(self, cache: ResponseCache | None = None) -> None:
        self.cache = cache if cache is not None else ResponseCache()

    def lookup(self, prompt: str, llm_string: str) -> Sequence[Generation] | None:
        """The generations stored for a prompt and a model's settings, or None."""
        found = self.cache.get(_key(prompt, llm_string), lambda text: True, None)
        return None if found is None else [_generation(one) for one in json.loads(found.text)]

    def update(self, prompt: str, llm_string: str, return_val: Sequence[Generation]) -> None:
        """Store generations."""
        text = json.dumps([_stored(one) for one in return_val])
        self.cache.put(_key(prompt, llm_string), Reply(ok=True, text=text), None)

    def clear(self, **kwargs: Any) -> None:
        """Remove every entry of the cache's file."""
        self.cache.clear()

    async def alookup(self, prompt: str, llm_string: str) -> Sequence[Generation] | None:
        """``lookup``: one row of a local file."""
        return self.lookup(prompt, llm_string)

    async def aupdate(self, prompt: str, llm_string: str, return_val: Sequence[Generation]) -> None:
        """``update``: one row of a local file."""
        self.update(prompt, llm_string, return_val)

    async def aclear(self, **kwargs: Any) -> None:
        """``clear``."""
        self.clear(**kwargs)


def _key(prompt: str, llm_string: str) -> str:
    return f"langchain:{content_hash([prompt, llm_string])}"


def _stored(generation: Generation) -> dict[str, Any]:
    info = plain(generation.generation_info)
    if isinstance(generation, ChatGeneration):
        message = packed(generation.message)
        if not message.get("usage_metadata"):
            message["usage_metadata"] = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
        return {"message": message, "info": info}
    return {"text": generation.text, "info": info}


def _generation(stored: dict[str, Any]) -> Generation:
    if "message" in stored:
        message = AIMessage.model_validate(stored["message"])
        return ChatGeneration(message=message, generation_info=stored["info"])
    return Generation(text=stored["text"], generation_info=stored["info"])
