"""A report desk on the bare core. Knows nothing of how it is tested."""

import os
from typing import Any

from harness_core import Answer, OpenAIClient, answer_document, call, example_document


def make_client() -> OpenAIClient:
    """The client of the live app."""
    return OpenAIClient(
        model="gpt-4o-mini",
        api="chat",
        embedding_model="text-embedding-3-small",
        base_url=os.environ.get("OPENAI_BASE_URL"),
    )


def answer(question: str, client: Any, recipe: str) -> Answer:
    """The answer of the bundled report."""
    return answer_document(example_document("md"), question, recipe, client=client)


def check(client: Any) -> str:
    """Whether the provider can be reached."""
    reply = call(client, "Are you there?", max_output=20)
    return "yes" if reply.ok else f"no: {reply.status}"
