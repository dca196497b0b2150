"""A ferry desk: notes found by vectors, a chain of prompt, model and parser. Knows no harness."""

from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import BaseModel

NOTES = [
    "Dunlin: a car ferry with 120 seats, built in 1962.",
    "Heron: a launch with 48 seats, built in 1987.",
    "The harbour office opens at eight.",
]


class Ship(BaseModel):
    """A ship of the company."""

    name: str
    passengers: int


def make_model() -> BaseChatModel:
    """The model of the live app."""
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="gpt-4o-mini", temperature=0, max_completion_tokens=200)


def make_embeddings() -> Embeddings:
    """The embeddings of the live app."""
    from langchain_openai import OpenAIEmbeddings

    return OpenAIEmbeddings(model="text-embedding-3-small", check_embedding_ctx_length=False)


def desk(model: BaseChatModel, embeddings: Embeddings) -> Runnable[Any, str]:
    """Answers a question from the two nearest notes."""
    store = InMemoryVectorStore.from_texts(NOTES, embeddings)
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Answer from the notes alone."),
            ("human", "Notes:\n{notes}\n\nQuestion: {question}"),
        ]
    )
    found = store.as_retriever(search_kwargs={"k": 2}) | (
        lambda documents: "\n".join(one.page_content for one in documents)
    )
    return {"notes": found, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()


def ship(model: BaseChatModel) -> Runnable[Any, Any]:
    """Extracts a ship from a note."""
    return model.with_structured_output(Ship)
