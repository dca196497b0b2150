"""A FunctionAgent with a reading engine as its tool: every request of both in one trace."""

import asyncio
import warnings
from collections.abc import Sequence
from typing import Any

from llama_index.core import Document
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, LLMMetadata, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import QueryEngineTool

from harness_integrations.llama_index import GovernedLLM, Governor, ReaderQueryEngine, Trace

# llama-index-core's workflows list every attribute of an agent, pydantic's old ones included
warnings.filterwarnings("ignore", message="The `__fields|Accessing the 'model_")

MANUAL = [
    Document(text="The warranty covers two years.", id_="warranty"),
    Document(text="Batteries are not covered.", id_="batteries"),
]


def replied(messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
    """What the stand-in says: it calls its tool, then answers; without a tool it reads."""
    if not kwargs.get("tools"):
        return ChatMessage(role="assistant", content="Two years [chunk 1].")
    if messages[-1].role.value == "tool":
        return ChatMessage(role="assistant", content=f"The manual says: {messages[-1].content}")
    call = ToolCallBlock(
        tool_call_id="1", tool_name="manual", tool_kwargs={"input": "How long is the warranty?"}
    )
    return ChatMessage(role="assistant", blocks=[call])


class HouseLLM(MockFunctionCallingLLM):
    """Stands for your LLM; it has the name of one, so that it has a price."""

    model: str = "gpt-4o-mini"
    max_tokens: int | None = None

    @property
    def metadata(self) -> LLMMetadata:
        """Its window, its cap, its name; it calls tools."""
        return LLMMetadata(
            context_window=128_000,
            num_output=self.max_tokens or -1,
            model_name=self.model,
            is_chat_model=True,
            is_function_calling_model=True,
        )


async def main() -> None:
    """Let the agent ask its tool, then answer."""
    trace = Trace(Governor(max_calls=4, max_cost_usd=0.10))
    house = HouseLLM()
    house.response_generator = replied
    llm = GovernedLLM(house, trace=trace)
    engine = ReaderQueryEngine.from_documents(MANUAL, "stuff", llm)
    tool = QueryEngineTool.from_defaults(engine, name="manual", description="Knows the manual.")
    agent = FunctionAgent(tools=[tool], llm=llm, system_prompt="Use the manual.", streaming=False)
    print(f"Answer    {await agent.run('How long is the warranty?')}")
    print(f"Requests  {[step.label for step in trace.requests]}")
    print(f"Spent     {trace.calls} of 4 requests, under 10 cents: {trace.spent_usd < 0.10}")


if __name__ == "__main__":
    asyncio.run(main())
