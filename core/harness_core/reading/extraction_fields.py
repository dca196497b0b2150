"""The typed form that ``extract`` fills: its fields, the schema asked for, and values read back."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from harness_core.config import read_number
from harness_core.errors import BadSettingError, NoFieldsError
from harness_core.reading.fields import is_placeholder, scalar, strict_object, text_field

FieldType: TypeAlias = Literal["string", "integer", "number", "boolean", "enum"]
Value: TypeAlias = str | int | float | bool

QUOTE = "__quote"
_TYPES: Mapping[str, str] = {
    "string": "string", "integer": "integer", "number": "number", "boolean": "boolean",
    "enum": "string",
}  # fmt: skip
_PYTHON: Mapping[Any, FieldType] = {
    str: "string", int: "integer", float: "number", bool: "boolean",
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
_RESERVED = frozenset({
    "document", "document_id", "status", "duplicate_of", "error", "n_filled", "n_unverified",
    "conflicts", "field", "chunk_id", "page", "section", "quote", "verified", "match",
})  # fmt: skip
_NOT_REPORTED = frozenset({
    "not reported", "not stated", "not mentioned", "not specified", "not given", "null",
})  # fmt: skip
_TRUTHS: Mapping[str, bool] = {
    "true": True, "yes": True, "y": True, "1": True,
    "false": False, "no": False, "n": False, "0": False,
}  # fmt: skip
_NUMBER = re.compile(
    r"(?<![\w.,-])([+-]?)(\d+(?:[., \u00a0\u2009\u202f]\d+)*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE
)
_GROUPED = re.compile(
    r"[1-9]\d{0,2}(?:(,\d{3})+(?:\.\d+)?|(\.\d{3}){2,}|([\u00a0\u2009\u202f]\d{3})+)"
)
_COMMA = re.compile(r"\d+,\d+")
_PLAIN = re.compile(r"\d*\.?\d+")
_SCALED = re.compile(
    r"(?:[kmb]|bn|mn)\b|\s*(?:hundred|thousand|million|billion|trillion|dozen|mn|bn)s?\b"
    r"|\s+(?-i:[kKMB])\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a form: its name, type, what it means, and the values an enum may have.

    Values given make it an enum. Names are letters, digits, underscores and dots.

    Raises:
        BadSettingError: a name, a type or values that cannot be used.
    """

    name: str
    type: FieldType = "string"
    description: str = ""
    enum: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "enum", tuple(str(one) for one in self.enum))
        if self.enum:
            object.__setattr__(self, "type", "enum")
        if not _NAME.fullmatch(self.name) or self.name.endswith(QUOTE):
            raise BadSettingError(
                f"a field's name is a letter, then letters, digits, _ and ., not {self.name!r}"
            )
        if self.name in _RESERVED:
            raise BadSettingError(f"{self.name!r} is a column of every result; rename the field")
        if self.type not in _TYPES:
            raise BadSettingError(f"a field is one of {', '.join(_TYPES)}, not {self.type!r}")
        if self.type == "enum" and not self.enum:
            raise BadSettingError(f"the enum {self.name!r} needs its values")

    @property
    def about(self) -> str:
        """What the field means, in words."""
        return self.description or self.name.replace("_", " ").replace(".", " ")

    @property
    def line(self) -> str:
        """The field as a prompt lists it."""
        kind = f"one of {', '.join(self.enum)}" if self.enum else self.type
        return f"- {self.name} ({kind}): {self.about}"

    @property
    def form(self) -> dict[str, Any]:
        """Its JSON schema: the type, or null."""
        form: dict[str, Any] = {"type": [_TYPES[self.type], "null"], "description": self.about}
        return {**form, "enum": [*self.enum, None]} if self.enum else form


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A value a reply gave for a field, and the quotation beside it. ``value`` None is unreadable.

    ``placeholder`` marks a text such as "None", a value only where the document says just that.
    """

    value: Value | None
    quote: str
    placeholder: bool = False


def as_fields(given: Any) -> tuple[Field, ...]:
    """Fields from a pydantic model class, or from fields, names and mappings.

    A mapping of names gives each a type, a description, or a mapping of both.

    Raises:
        NoFieldsError: none at all.
        BadSettingError: a field that cannot be used, or two of one name.
    """
    fields = tuple(_listed(given))
    if not fields:
        raise NoFieldsError("extract needs fields: a list of Field, or a pydantic model class")
    names = [field.name for field in fields]
    if len(set(names)) < len(names):
        raise BadSettingError(f"two fields have one name: {', '.join(names)}")
    return fields


def form_schema(fields: Iterable[Field]) -> dict[str, Any]:
    """The JSON schema of a form: each field and its quotation, all nullable, all required."""
    properties: dict[str, Any] = {}
    for field in fields:
        properties[field.name] = field.form
        properties[f"{field.name}{QUOTE}"] = {"type": ["string", "null"]}
    return strict_object(properties)


def read_given(field: Field, record: Mapping[str, Any]) -> Given | None:
    """What a reply gives for a field; None when it gives nothing."""
    quote, said = text_field(record, f"{field.name}{QUOTE}"), text_field(record, field.name)
    value = record.get(field.name)
    if field.enum and said in field.enum:
        return Given(value=said, quote=quote)
    if not said or said.lower().strip(" .") in _NOT_REPORTED:
        return None
    if field.type == "string":
        return Given(value=said, quote=quote, placeholder=is_placeholder(said))
    if is_placeholder(said):
        return None
    return Given(value=_typed(field, scalar(value)), quote=quote)


def same_value_key(value: Value) -> object:
    """What two values have in common when they are the same value.

    Numbers agree to 15 significant digits; texts without regard to case, quotes and a final stop.
    """
    from harness_core.checks.normalise import normalised, trimmed

    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        plain = normalised(value)
        return trimmed(plain).norm.rstrip("!?") or plain.norm
    return int(value) if value == int(value) else f"{value:.15g}"


def _typed(field: Field, value: Any) -> Value | None:
    """The value in the field's type; None when it cannot be read as one."""
    match field.type:
        case "boolean":
            return value if isinstance(value, bool) else _TRUTHS.get(str(value).strip().lower())
        case "enum":
            folded = str(value).strip().casefold()
            return next((one for one in field.enum if one.casefold() == folded), None)
        case _:
            number = _number(value)
            if number is None or (field.type == "integer" and number != int(number)):
                return None
            return int(number) if field.type == "integer" else number


def _number(value: Any) -> int | float | None:
    """A number, or the one number a text states; none with a scale word, none beside another."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    text = str(value).replace("\u2212", "-")
    found = list(_NUMBER.finditer(text))
    if len(found) != 1 or re.search(r"\d", text[: found[0].start()] + text[found[0].end() :]):
        return None
    if _SCALED.match(text, found[0].end()):
        return None
    sign, digits, exponent = found[0].groups(default="")
    plain = _ungrouped(digits)
    return None if plain is None else _exact(f"{sign}{plain}{exponent}")


def _ungrouped(digits: str) -> str | None:
    """Digits without their grouping; None when it cannot be told what groups them."""
    if _PLAIN.fullmatch(digits):
        return digits
    if _GROUPED.fullmatch(digits):
        several = digits.count(".") > 1
        return re.sub(r"[.,\s]" if several else r"[,\s]", "", digits)
    return digits.replace(",", ".") if _COMMA.fullmatch(digits) else None


def _exact(text: str) -> int | float | None:
    try:
        return int(text)
    except ValueError:
        number = read_number(text)
        return None if number is None or math.isinf(number) else number


def _listed(given: Any) -> Iterable[Field]:
    if isinstance(given, type) and issubclass(given, BaseModel):
        return [_of_model(name, info) for name, info in given.model_fields.items()]
    if given is None or isinstance(given, (str, Field)):
        return [] if given is None else [_one(given)]
    if isinstance(given, Mapping):
        return [_named(name, about) for name, about in given.items()]
    if isinstance(given, Iterable):
        return [_one(one) for one in given]
    raise BadSettingError(
        f"fields are a list of Field, or a pydantic model class, not {type(given).__name__}"
    )


def _one(given: Any) -> Field:
    if isinstance(given, Field):
        return given
    if isinstance(given, str):
        return Field(given)
    if isinstance(given, Mapping) and isinstance(given.get("name"), str):
        return _named(given["name"], {k: v for k, v in given.items() if k != "name"})
    raise BadSettingError(f"a field is a Field, a name, or a mapping with a name, not {given!r}")


def _named(name: str, about: Any) -> Field:
    if isinstance(about, Field):
        return about
    if isinstance(about, str):
        return Field(name, about) if about in _TYPES else Field(name, description=about)  # type: ignore[arg-type]  # looked up just now
    try:
        return Field(name, **about)
    except TypeError as error:
        raise BadSettingError(f"field {name!r}: {error}") from error


def _of_model(name: str, info: FieldInfo) -> Field:
    kind, values = _python_type(info.annotation)
    if kind is None:
        raise BadSettingError(
            f"field {name!r} is text, a number, a truth value or one of several texts, not "
            f"{info.annotation!r}"
        )
    return Field(name, kind, info.description or "", values)


def _python_type(annotation: Any) -> tuple[FieldType | None, tuple[str, ...]]:
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        inner = [one for one in get_args(annotation) if one is not NoneType]
        return _python_type(inner[0]) if len(inner) == 1 else (None, ())
    if origin is Literal:
        return "enum", tuple(str(one) for one in get_args(annotation) if one is not None)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "enum", tuple(str(one.value) for one in annotation)
    return _PYTHON.get(annotation), ()
