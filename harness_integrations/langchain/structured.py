"""Structured output by the best way a chat model offers, its raw message always kept."""

import json
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable, RunnableLambda

from harness_core.messages import Request

Method = Literal["json_schema", "function_calling", "prompt"]


def structured(
    leaf: BaseChatModel, request: Request, method: Literal["auto"] | Method
) -> Runnable[Any, Any]:
    """What to invoke so that the reply fits ``request.schema``."""
    chosen = best_method(leaf) if method == "auto" else method
    schema = {"title": request.schema_name, "description": "The result.", **(request.schema or {})}
    if chosen == "json_schema" and _speaks_openai(leaf):
        wanted = {"name": request.schema_name, "schema": dict(request.schema or {})}
        return leaf.bind(response_format={"type": "json_schema", "json_schema": wanted})
    if chosen != "prompt":
        try:
            return leaf.with_structured_output(schema, method=chosen, include_raw=True)
        except (NotImplementedError, ValueError, TypeError):
            chosen = "prompt"
    told = json.dumps(schema)
    asked = f"Reply with one JSON object and nothing else. It must fit this JSON schema:\n{told}"
    asking: Runnable[Any, Any] = RunnableLambda(lambda given: [*given, HumanMessage(content=asked)])
    return asking | leaf


def best_method(leaf: BaseChatModel) -> Method:
    """A schema the provider enforces, else a tool that takes it, else a sentence in the prompt."""
    profile = leaf.profile or {}
    if _speaks_openai(leaf) or profile.get("structured_output"):
        return "json_schema"
    tools = type(leaf).bind_tools is not BaseChatModel.bind_tools
    return "function_calling" if tools and profile.get("tool_calling") is not False else "prompt"


def _speaks_openai(leaf: BaseChatModel) -> bool:
    return any(kind.__name__ == "BaseChatOpenAI" for kind in type(leaf).__mro__)
