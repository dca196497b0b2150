"""Settings of a request as providers spell them, in one form: tools, choices, schemas, caps."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness_core.messages import clean_text
from harness_integrations.shared.snapshots import plain

CAPS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
"""Names of the output cap."""


def read_tools(tools: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Tools of any provider's form as name, description and schema.

    What a framework adds for one provider (``strict``, ``additionalProperties: false``) is left
    out, so that the same tools are the same request.
    """
    for tool in tools:
        told = plain(tool)
        if not isinstance(told, Mapping):
            yield {"name": str(told)}
            continue
        inner = told.get("function")
        inner = inner if isinstance(inner, Mapping) else told
        schema = inner.get("parameters") or inner.get("input_schema")
        yield {
            "name": inner.get("name") or told.get("type"),
            "description": inner.get("description"),
            "schema": open_schema(schema if schema is not None else inner),
        }


def open_schema(schema: Any) -> Any:
    """A JSON schema without the ``additionalProperties: false`` that strict modes add."""
    if isinstance(schema, Mapping):
        return {
            name: open_schema(value)
            for name, value in schema.items()
            if not (name == "additionalProperties" and value is False)
        }
    return [open_schema(one) for one in schema] if isinstance(schema, list) else schema


def closed_schema(schema: Any) -> Any:
    """A JSON schema as strict modes ask for it: every object closed, all its fields required."""
    if isinstance(schema, Mapping):
        closed = {name: closed_schema(value) for name, value in schema.items() if name != "default"}
        if isinstance(fields := schema.get("properties"), Mapping):
            closed["properties"] = {name: closed_schema(value) for name, value in fields.items()}
            closed |= {"additionalProperties": False, "required": list(fields)}
        return closed
    return [closed_schema(one) for one in schema] if isinstance(schema, list) else schema


def read_tool_choice(choice: Any) -> str | None:
    """Which tool must be called: none, auto, required, or a name."""
    if isinstance(choice, bool):
        return "required" if choice else None
    if isinstance(choice, Mapping):
        inner = choice.get("function")
        named = inner.get("name") if isinstance(inner, Mapping) else choice.get("name")
        choice = named or choice.get("type")
    return {"any": "required"}.get(choice, plain(choice)) if isinstance(choice, str) else None


def read_schema(response_format: Any) -> tuple[dict[str, Any] | None, str]:
    """The JSON schema a reply must fit, and its name."""
    if isinstance(response_format, type):
        told = plain(response_format)
        return (told, response_format.__name__) if isinstance(told, dict) else (None, "result")
    if isinstance(response_format, Mapping) and response_format.get("type") == "json_schema":
        inner = response_format.get("json_schema") or response_format
        if isinstance(inner.get("schema"), Mapping):
            return plain(inner["schema"]), str(inner.get("name") or "result")
    return None, "result"


def read_cap(settings: Mapping[str, Any]) -> int | None:
    """The output cap among settings, in tokens."""
    return next((settings[name] for name in CAPS if is_count(settings.get(name))), None)


def is_count(value: Any) -> bool:
    """Whether a value is a positive whole number."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def number(value: Any) -> float | None:
    """A value as a number, None for what is none."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def stops(stop: Any) -> tuple[str, ...]:
    """Stop sequences, given as one or several."""
    return tuple(clean_text(str(one)) for one in ([stop] if isinstance(stop, str) else stop or ()))
