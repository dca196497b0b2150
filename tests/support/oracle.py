"""A stand-in for a model whose reply is decided by the prompt and the draw alone.

It quotes word for word what it was shown, so that a run in which nothing fails degrades nowhere.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness_core.messages import Reply

Mood = Literal["well", "third fails", "cut off", "no structure"]

_WORDS = (
    "harbour", "ledger", "quarry", "lantern", "meadow", "orchard", "pillar", "ribbon",
    "saddle", "timber", "valley", "willow", "anchor", "basket", "copper", "dialect",
)  # fmt: skip
_SHOWN = re.compile(r"\[chunk (\d+)")
_SENTENCE = re.compile(r"The (marker\w+) entry says [^.]*\.")


def digest(messages: Sequence[Mapping[str, Any]], draw: int = 0) -> int:
    """A number that stands for a prompt and its draw."""
    said = json.dumps([[m["role"], m["content"]] for m in messages] + [draw])
    return int.from_bytes(hashlib.sha256(said.encode()).digest()[:8], "big")


@dataclass(frozen=True, slots=True)
class Oracle:
    """``oracle(messages, params)`` replies in the given mood."""

    mood: Mood = "well"

    def __call__(self, messages: Sequence[Mapping[str, Any]], params: Mapping[str, Any]) -> Any:
        seed = digest(messages, params["draw_index"])
        if self.mood == "third fails" and seed % 3 == 0:
            raise RuntimeError(f"the model is not well ({seed % 1000})")
        shown = "\n".join(message["content"] for message in messages[1:])
        text = self._said(shown, params, seed)
        return Reply(ok=True, text=text, finish_reason="length" if self.mood == "cut off" else None)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Vectors decided by the texts; a batch fails where a prompt would."""
        if self.mood == "third fails":
            raise RuntimeError("no vectors today")
        return [[float(1 + byte) for byte in hashlib.sha256(t.encode()).digest()] for t in texts]

    def _said(self, shown: str, params: Mapping[str, Any], seed: int) -> str:
        quotes = [found[0] for found in _SENTENCE.finditer(shown)]
        quote = quotes[seed % len(quotes)] if quotes else ""
        schema = params["schema"]
        if schema is not None and self.mood != "no structure":
            return json.dumps(_filled(schema, seed, quote))
        if quote and params["label"] in ("skim.extract", "preview.skim"):
            return quote
        ids = sorted(set(map(int, _SHOWN.findall(shown))))
        cited = f" [chunk {ids[seed % len(ids)]}]" if ids else ""
        return f"{_words(seed)}{cited}"


def _words(seed: int) -> str:
    return " ".join(_WORDS[(seed >> (4 * place)) % 16] for place in range(6)).capitalize() + "."


def _filled(schema: Mapping[str, Any], seed: int, quote: str, name: str = "") -> Any:
    kind = schema.get("type", "string")
    kind = kind if isinstance(kind, str) else kind[0]
    if "enum" in schema:
        return schema["enum"][0]
    match kind:
        case "object":
            properties = schema["properties"]
            return {key: _filled(one, seed, quote, key) for key, one in properties.items()}
        case "array":
            return [_filled(schema["items"], seed, quote, name)]
        case "boolean":
            return True
        case "integer" | "number":
            return 1 if name == "id" else _high(schema, seed)
        case _:
            return _text(name, seed, quote)


def _high(schema: Mapping[str, Any], seed: int) -> int:
    """A number in the upper half of its range."""
    least = int(schema.get("minimum", 0))
    most = int(schema.get("maximum", least + 10))
    return most - seed % max((most - least + 1) // 2, 1)


def _text(name: str, seed: int, quote: str) -> str | None:
    if "quote" in name or name == "text":
        return quote
    if name == "topic":  # a field of the form: stated by the sentence that is quoted
        found = _SENTENCE.match(quote)
        return found[1] if found else None
    return None if name in ("criterion", "false_premise") else _words(seed)
