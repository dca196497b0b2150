"""A harbour archive: an index over notes, and an agent that asks it. Knows no harness."""

from typing import Any

from llama_index.core import Document, Settings, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import FunctionTool

NOTES = {
    "dunlin": "The Dunlin is a car ferry with 120 seats. It was built in 1962.",
    "heron": "The Heron is a launch with 48 seats. It was built in 1987.",
    "office": "The harbour office opens at eight.",
}


def make_llm() -> Any:
    """The LLM of the live app."""
    from llama_index.llms.openai import OpenAI

    return OpenAI(model="gpt-4o-mini", temperature=0, max_tokens=200)


def make_embedding() -> Any:
    """The embeddings of the live app."""
    from llama_index.embeddings.openai import (  # type: ignore[import-untyped]  # it ships no types
        OpenAIEmbedding,
    )

    return OpenAIEmbedding(model="text-embedding-3-small")


def archive() -> VectorStoreIndex:
    """The index, with whatever ``Settings`` name."""
    return VectorStoreIndex.from_documents(
        [Document(text=text, id_=name) for name, text in NOTES.items()]
    )


def agent(index: VectorStoreIndex) -> FunctionAgent:
    """An agent that looks things up in the archive."""
    engine = index.as_query_engine(similarity_top_k=1)

    def look_up(question: str) -> str:
        """Look something up in the archive."""
        return str(engine.query(question))

    return FunctionAgent(
        tools=[FunctionTool.from_defaults(look_up)],
        llm=Settings.llm,
        system_prompt="You keep the archive.",
    )
