"""The loopback server with a mind of its own: it calls tools and fills schemas, by fixed rules."""

import json
import re
from typing import Any

from tests.support.openai_server import Json, OpenAIServer, Scripted, Seen


class ToolServer(OpenAIServer):
    """Answers a schema with an object that fits it, a question beside tools with a call."""

    def take(self, seen: Seen) -> Scripted:
        scripted = super().take(seen)
        return (
            decided(seen.body) if scripted == Scripted() and "messages" in seen.body else scripted
        )


def decided(body: Json) -> Scripted:
    """What a request gets: an object, a tool call, or words."""
    asked = body["messages"][-1]
    text = str(asked.get("content") or "")
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        return Scripted(text=json.dumps(filled(wanted["json_schema"]["schema"], text)))
    if wanted.get("type") == "json_object":
        return Scripted(text=json.dumps({"setup": "Why?", "punchline": "Because."}))
    tools = {one["function"]["name"]: one["function"] for one in body.get("tools") or ()}
    choice = body.get("tool_choice")
    if not tools or choice == "none" or (asked["role"] == "tool" and choice is None):
        return Scripted()
    name = choice["function"]["name"] if isinstance(choice, dict) else next(iter(tools))
    arguments = filled(tools[name].get("parameters") or {}, text)
    return Scripted(tool_calls=[(name, arguments)], finish="tool_calls")


def filled(schema: Json, text: str) -> Any:
    """The smallest value that fits a schema, with numbers and quoted words of a text."""
    properties: dict[str, Json] = schema.get("properties") or {}
    quoted = re.search(r"'([^']+)'", text)
    numbers = re.findall(r"\d+", text)
    plain: dict[str, Any] = {
        "string": quoted[1] if quoted else (text[:40] or "words"),
        "integer": int(numbers[0]) if numbers else 1,
        "number": float(numbers[0]) if numbers else 1.0,
        "boolean": True,
        "array": [],
        "object": {},
    }
    return {name: plain.get(_type(one), "words") for name, one in properties.items()}


def _type(schema: Json) -> str:
    options = schema.get("anyOf") or [schema]
    return str(options[0].get("type", "string"))
