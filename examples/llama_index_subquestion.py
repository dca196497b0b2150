"""Two engines under one budget, asked by a SubQuestionQueryEngine, which swallows every error.

``governed_run`` raises at its end what was refused and swallowed inside.
"""

from collections.abc import Sequence
from typing import Any

from llama_index.core import Document
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import SubQuestionQueryEngine
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import QueryEngineTool, ToolMetadata

from harness_integrations.llama_index import (
    GovernedLLM,
    Governor,
    ReaderQueryEngine,
    ReaderSynthesizer,
    RequestRefused,
    Trace,
    governed_run,
)

SHIPS = {
    "dunlin": "The Dunlin carries 61 passengers.",
    "curlew": "The Curlew carries 48 passengers.",
}


class HouseLLM(CustomLLM):
    """Stands for your LLM; it has the name of one, so that it has a price."""

    model: str = "gpt-4o-mini"
    max_tokens: int | None = None

    @property
    def metadata(self) -> LLMMetadata:
        """Its window, its cap, its name."""
        return LLMMetadata(
            context_window=128_000, num_output=self.max_tokens or -1, model_name=self.model
        )

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Answer from what the prompt holds."""
        known = [word for word in ("61", "48") if f"carries {word}" in prompt]
        return CompletionResponse(text=f"She carries {' and '.join(known)}.")

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        """Answer in one piece."""
        response = self.complete(prompt)
        yield response.model_copy(update={"delta": response.text})


class OnePerTool(BaseQuestionGenerator):
    """Asks every tool the same."""

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None:
        """There are none."""

    def generate(self, tools: Sequence[ToolMetadata], query: QueryBundle) -> list[SubQuestion]:
        """One question for each tool."""
        return [
            SubQuestion(sub_question=query.query_str, tool_name=tool.get_name()) for tool in tools
        ]

    async def agenerate(
        self, tools: Sequence[ToolMetadata], query: QueryBundle
    ) -> list[SubQuestion]:
        """The same."""
        return self.generate(tools, query)


def both_ships(llm: GovernedLLM) -> SubQuestionQueryEngine:
    """An engine for each ship, and one that asks both."""
    tools = [
        QueryEngineTool(
            ReaderQueryEngine.from_documents([Document(text=text)], "stuff", llm, on_limit="error"),
            ToolMetadata(name=name, description=f"About the {name}."),
        )
        for name, text in SHIPS.items()
    ]
    last = ReaderSynthesizer("stuff", llm)
    return SubQuestionQueryEngine(OnePerTool(), last, tools, use_async=False, verbose=False)


def main() -> None:
    """Ask within a budget, then within one that is too small."""
    llm = GovernedLLM(HouseLLM())
    with governed_run(Trace(Governor(max_calls=3))) as trace:
        print(f"Answer    {both_ships(llm).query('How many passengers?')}")
    print(f"Requests  {trace.calls} of 3: {[step.label for step in trace.requests]}")
    small = Trace(Governor(max_calls=1))
    try:
        with governed_run(small):
            print(f"Swallowed {both_ships(llm).query('How many passengers?')}")
    except RequestRefused as refused:
        print(f"Refused   {refused.reason}, after {small.calls} request")


if __name__ == "__main__":
    main()
