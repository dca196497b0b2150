"""A reader as an agent's tool: the answer for the model, the evidence beside it."""

from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from harness_integrations.langchain.outputs import ReaderOutput
from harness_integrations.langchain.reader import DocumentReader

Told = tuple[str, ReaderOutput]


class Question(BaseModel):
    """What a tool with documents of its own is asked."""

    question: str = Field(description="One question, complete in itself.")


class QuestionAndText(Question):
    """What a tool without documents of its own is asked."""

    text: str = Field(description="The text to answer from.")


def create_reader_tool(
    reader: DocumentReader,
    retriever: BaseRetriever | Runnable[str, list[Document]] | None = None,
    name: str = "read_documents",
    description: str | None = None,
) -> BaseTool:
    """A tool that answers a question from what ``retriever`` finds, or from a text it is given.

    Its content is the answer, with a sentence when it is partial; its artifact the full output,
    which does not go to the model. A limit ends in a partial answer unless the reader says
    ``on_limit="error"``.
    """
    full = reader.model_copy(update={"output": "full"})
    told = description or (
        "Answers a question from documents, and says when they do not hold the answer."
    )

    def search(question: str, config: RunnableConfig) -> Told:
        if retriever is None:
            raise TypeError("a tool without a retriever is given its text")
        documents = retriever.invoke(question, config)
        return _told(full.invoke({"question": question, "documents": documents}, config))

    async def asearch(question: str, config: RunnableConfig) -> Told:
        if retriever is None:
            raise TypeError("a tool without a retriever is given its text")
        documents = await retriever.ainvoke(question, config)
        return _told(await full.ainvoke({"question": question, "documents": documents}, config))

    def answer(question: str, text: str, config: RunnableConfig) -> Told:
        return _told(full.invoke({"question": question, "documents": text}, config))

    async def aanswer(question: str, text: str, config: RunnableConfig) -> Told:
        return _told(await full.ainvoke({"question": question, "documents": text}, config))

    given = retriever is None
    schema: type[BaseModel] = QuestionAndText if given else Question
    sync: Any = answer if given else search
    return StructuredTool.from_function(
        func=sync,
        coroutine=aanswer if given else asearch,
        name=name,
        description=told,
        args_schema=schema,
        response_format="content_and_artifact",
    )


def _told(output: ReaderOutput) -> Told:
    said = output["answer"]
    if output["partial"]:
        said = (
            f"{said}\n(Not everything was read: {'; '.join(output['reasons']) or 'see the notes'})"
        )
    return said, output
