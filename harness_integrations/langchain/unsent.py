"""A chat model that forms requests as OpenAI's does and cannot send any."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
from langchain_core.output_parsers.openai_tools import JsonOutputKeyToolsParser, PydanticToolsParser
from langchain_core.outputs import ChatResult
from langchain_core.runnables import Runnable, RunnableMap, RunnablePassthrough
from langchain_core.utils.function_calling import convert_to_openai_function, convert_to_openai_tool
from langchain_core.utils.pydantic import is_basemodel_subclass
from pydantic import BaseModel


class UnsentChatModel(BaseChatModel):
    """Stands for a model whose package need not be there: tools and schemas in OpenAI's form."""

    model: str = ""

    @property
    def _llm_type(self) -> str:
        return "unsent"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        raise RuntimeError("this model only forms requests; it cannot send them")

    def bind_tools(
        self,
        tools: Sequence[Any],
        *,
        tool_choice: Any = None,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Tools in OpenAI's form."""
        formed = [convert_to_openai_tool(tool, strict=strict) for tool in tools]
        names = [one.get("function", {}).get("name") for one in formed]
        if isinstance(tool_choice, str) and tool_choice in names:
            tool_choice = {"type": "function", "function": {"name": tool_choice}}
        elif tool_choice in ("any", True):
            tool_choice = "required"
        chosen = {} if not tool_choice else {"tool_choice": tool_choice}
        return self.bind(tools=formed, **chosen, **kwargs)

    def with_structured_output(
        self,
        schema: Any,
        *,
        include_raw: bool = False,
        method: Literal["json_schema", "function_calling", "json_mode"] = "json_schema",
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Any]:
        """Structured output in OpenAI's form, parsed as its package parses it."""
        kind = schema if isinstance(schema, type) and is_basemodel_subclass(schema) else None
        if kind is not None and not issubclass(kind, BaseModel):
            method = "function_calling"  # pydantic's first version has no JSON schema of its own
        parser: Any
        shown = {"ls_structured_output_format": {"kwargs": {"method": method}, "schema": schema}}
        if method == "function_calling":
            name = convert_to_openai_tool(schema)["function"]["name"]
            llm = self.bind_tools(
                [schema], tool_choice=name, strict=strict, parallel_tool_calls=False, **shown
            )
            parser = (
                JsonOutputKeyToolsParser(key_name=name, first_tool_only=True)
                if kind is None
                else PydanticToolsParser(tools=[kind], first_tool_only=True)
            )
        else:
            llm = self.bind(response_format=_format(schema, kind, method, strict), **shown)
            parser = (
                JsonOutputParser() if kind is None else PydanticOutputParser(pydantic_object=kind)
            )
        if not include_raw:
            chain: Runnable[LanguageModelInput, Any] = llm | parser
            return chain
        parsed = RunnablePassthrough.assign(
            parsed=itemgetter("raw") | parser, parsing_error=lambda _: None
        )
        failed = RunnablePassthrough.assign(parsed=lambda _: None)
        return RunnableMap(raw=llm) | parsed.with_fallbacks([failed], exception_key="parsing_error")


def _format(schema: Any, kind: Any, method: str, strict: bool | None) -> Any:
    if method == "json_mode":
        return {"type": "json_object"}
    if kind is not None:
        return kind
    function = convert_to_openai_function(schema, strict=strict)
    wanted = {"name": function["name"], "schema": function.get("parameters", {})}
    return {"type": "json_schema", "json_schema": wanted}
