"""Schemas filled from sentences: a value only where one states it, and that sentence beside it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness_core.clients.extracts.matching import matches
from harness_core.clients.extracts.units import Unit

_NUMBER = re.compile(r"(?<![\w.,])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")
_YEAR = re.compile(r"(?:19|20)\d\d")
_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9}
_NEGATED = re.compile(r"\b(?:not|no|never|none|neither|without|nor)\b|n't\b", re.IGNORECASE)
_EMPTY: Mapping[str, Any] = {
    "string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {},
    "null": None,
}  # fmt: skip


def read_fields(schema: Mapping[str, Any], units: Sequence[Unit]) -> dict[str, Any]:
    """A value for each property that a unit states, None for the others, quotes beside both."""
    record: dict[str, Any] = {}
    properties = schema.get("properties") or {}
    for name, form in properties.items():
        if name.endswith("__quote"):
            continue
        value, unit = _found(name, form, units)
        record[name] = value
        if f"{name}__quote" in properties:
            record[f"{name}__quote"] = None if unit is None else unit.text
    return record


def filled(schema: Mapping[str, Any] | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """``given``, less what the schema does not know, plus an empty value for what it asks for."""
    properties = (schema or {}).get("properties")
    if not properties:
        return dict(given)
    return {
        name: given[name] if name in given else _empty(form) for name, form in properties.items()
    }


def _found(name: str, form: Mapping[str, Any], units: Sequence[Unit]) -> tuple[Any, Unit | None]:
    about = f"{name.replace('_', ' ')} {form.get('description', '')}"
    for asked in (about, name.replace("_", " ")):
        for match in matches(asked, units):
            value = _value(form, about, match.unit) if match.enough else None
            if value is not None:
                return value, match.unit
    return None, None


def _value(form: Mapping[str, Any], about: str, unit: Unit) -> Any:
    if form.get("enum"):
        stated = unit.text.lower()
        return next((one for one in form["enum"] if one and str(one).lower() in stated), None)
    kinds = _kinds(form)
    if "boolean" in kinds:
        return _NEGATED.search(unit.text) is None
    if kinds & {"integer", "number"}:
        number = _number(about, unit.text)
        whole = number is not None and (number == int(number))
        return (
            int(number) if number is not None and whole else number if "number" in kinds else None
        )
    return unit.text if "string" in kinds else None


def _number(about: str, text: str) -> float | None:
    """The first number that the field itself does not name, years last, with its scale word."""
    found = [one for one in _NUMBER.finditer(text) if one[0] not in about]
    found.sort(key=lambda one: _YEAR.fullmatch(one[0]) is not None)
    if not found:
        return None
    after = text[found[0].end() :].split(maxsplit=1)[:1]
    scale = after[0].strip(".,;:)").lower() if after else ""
    number = float(found[0][0].replace(",", ""))
    return number * _SCALES.get(scale, 1) if scale not in about.lower() else number


def _kinds(form: Mapping[str, Any]) -> set[str]:
    kind = form.get("type", "string")
    return set(kind) if isinstance(kind, list) else {kind}


def _empty(form: Mapping[str, Any]) -> Any:
    kinds = _kinds(form)
    if "null" in kinds:
        return None
    if form.get("enum"):
        return form["enum"][0]
    kind = next(iter(kinds))
    return form.get("minimum", _EMPTY[kind]) if kind in {"integer", "number"} else _EMPTY.get(kind)
