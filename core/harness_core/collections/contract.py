"""The wire contract of answering over a collection: what is asked, and what comes back.

One definition for the library, the HTTP service and the adapters. Requests are strict: nothing is
coerced, nothing unknown is accepted. Results are open: a newer server may say more.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

import regex
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from harness_core.collections.faults import InvalidRequestError

CONTRACT: Final = "engine-answer/0.1.0-preview@2026-09-14"
BODY_BYTES: Final = 6_291_456
SEARCH_BODY_BYTES: Final = 4_194_304
OTHER_BODY_BYTES: Final = 1_048_576
QUERY_CHARS: Final = 32_000
INSTRUCTIONS_CHARS: Final = 8_000
HISTORY_TURNS: Final = 32
PRINCIPALS: Final = 4_096
PRINCIPAL_BYTES: Final = 256
EVERYONE: Final = "*"

_VISIBLE = regex.compile(r"[^\p{White_Space}\p{Cc}\p{Cf}]")

Effort = Literal["medium", "high"]
Mode = Literal["all", "cited", "none"]
Unit = Literal["pages", "chars", "seconds", "file"]


def _whole(value: Any) -> Any:
    """JSON has one type of number: 7.0 is the integer 7."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_WHOLE = BeforeValidator(_whole)
Offset = Annotated[int, Field(ge=0, le=2_147_483_647), _WHOLE]


class Asked(BaseModel):
    """A request body: strict, frozen, nothing unknown in it."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @classmethod
    def parse(cls, body: Any) -> Self:
        """The request that ``body`` (parsed JSON) is.

        Raises:
            InvalidRequestError: with the pointer of the first fault.
        """
        if isinstance(body, cls):
            return body
        if not isinstance(body, Mapping):
            raise InvalidRequestError("the body is a JSON object", "")
        try:
            return cls(**body)
        except ValidationError as error:
            raise _fault(error) from None
        except TypeError:
            raise InvalidRequestError("a member's name is no text", "") from None


def _fault(error: ValidationError) -> InvalidRequestError:
    """The first fault, without what was given: it may not even be encodable."""
    first = error.errors(include_url=False, include_input=False)[0]
    pointer = "".join(f"/{_escaped(step)}" for step in first["loc"])
    what = _WORDS.get(first["type"], "is not valid").format(**first.get("ctx", {}))
    return InvalidRequestError(f"{pointer or 'the body'} {what}", pointer)


def _escaped(step: int | str) -> str:
    plain = str(step).replace("~", "~0").replace("/", "~1")
    return plain[:200].encode("utf-8", "replace").decode()


_WORDS: Final[Mapping[str, str]] = {
    "missing": "is required",
    "extra_forbidden": "is not a known member",
    "string_type": "is a string",
    "string_too_long": "is too long",
    "string_too_short": "is too short",
    "too_long": "has too many entries",
    "too_short": "has too few entries",
    "literal_error": "is not {expected}",
    "list_type": "is an array",
    "int_type": "is an integer",
    "value_error": "breaks a rule: {error}",
}


class Turn(Asked):
    """One earlier message of the conversation; the caller keeps the conversation."""

    role: Literal["user", "assistant"]
    content: Annotated[str, Field(max_length=QUERY_CHARS)]


class QueryImage(Asked):
    """An image beside the question: base64 without a data-URI prefix, at most 4 MiB decoded."""

    data: Annotated[str, Field(repr=False)]
    media_type: Literal["image/png", "image/jpeg", "image/webp"]


def checked_principals(given: list[str] | None) -> list[str] | None:
    """Principals without repeats.

    Raises:
        ValueError: an empty one, one over 256 bytes or with U+0000, or the reserved ``*``.
    """
    for one in given or ():
        size = len(one.encode("utf-8", "surrogatepass"))
        if not one or one == EVERYONE or size > PRINCIPAL_BYTES or "\0" in one:
            raise ValueError(
                "a principal is 1 to 256 bytes, none of them 0, and not the reserved *"
            )
    return None if given is None else list(dict.fromkeys(given))


Principals = Annotated[list[str], Field(max_length=PRINCIPALS)] | None


class _Question(Asked):
    query: Annotated[str, Field(min_length=1, max_length=QUERY_CHARS)]
    filter: Any = None
    principals: Principals = None

    @field_validator("query")
    @classmethod
    def _visible(cls, value: str) -> str:
        if not _VISIBLE.search(value):
            raise ValueError("the query holds no text")
        return value

    @field_validator("principals")
    @classmethod
    def _principals(cls, value: list[str] | None) -> list[str] | None:
        return checked_principals(value)


class AnswerRequest(_Question):
    """A question to a collection.

    ``principals`` (who asks) are required where the collection enforces access control and
    forbidden where it does not. ``instructions`` are about style alone.
    """

    effort: Effort = "medium"
    sources: Mode = "all"
    history: Annotated[list[Turn], Field(max_length=HISTORY_TURNS)] = []
    instructions: Annotated[str, Field(max_length=INSTRUCTIONS_CHARS)] | None = None
    query_image: QueryImage | None = None


class SearchRequest(_Question):
    """A search in a collection (ours): the ranked places, without an answer."""

    limit: Annotated[int, Field(ge=1, le=100), _WHOLE] = 10
    include_text: bool = False


class _Told(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def extra(self) -> dict[str, Any]:
        """The members that a newer server added."""
        return dict(self.model_extra or {})

    def wire(self) -> dict[str, Any]:
        """The JSON members of the contract; what is not said is left out."""
        return self.model_dump(mode="json", exclude_none=True)


class PageRange(_Told):
    """Pages from 1, the end exclusive."""

    start: Annotated[int, Field(ge=1)]
    end: Annotated[int, Field(ge=1)]


class Span(_Told):
    """A place in a file. ``chars`` are code points of its text form from 0, the end exclusive."""

    file_id: str
    unit: Unit | str
    start: Offset | None = None
    end: Offset | None = None
    pages: PageRange | None = None


class AskedPages(Asked):
    """Pages of a span to read."""

    start: Annotated[int, Field(ge=1), _WHOLE]
    end: Annotated[int, Field(ge=1), _WHOLE]


class AskedBox(Asked):
    """A box on a page, as fractions from its left and top; the whole page is read."""

    left: Annotated[float, Field(ge=0, le=1)]
    top: Annotated[float, Field(ge=0, le=1)]
    right: Annotated[float, Field(ge=0, le=1)]
    bottom: Annotated[float, Field(ge=0, le=1)]


class AskedSpan(Asked):
    """A span to read, as a source gave it."""

    file_id: Annotated[str, Field(max_length=64)]
    unit: Unit
    start: Offset | None = None
    end: Offset | None = None
    pages: AskedPages | None = None
    bbox: AskedBox | None = None


class ReadSpansRequest(Asked):
    """The spans to read (ours): their texts ``inline``, or links to them (``url``)."""

    spans: Annotated[list[AskedSpan], Field(min_length=1, max_length=100)]
    principals: Principals = None
    delivery: Literal["inline", "url"] = "inline"

    @field_validator("principals")
    @classmethod
    def _principals(cls, value: list[str] | None) -> list[str] | None:
        return checked_principals(value)


class Highlight(_Told):
    """Some text around a passage; ``match_ranges`` are code points of it, the end exclusive."""

    text: str
    match_ranges: list[tuple[int, int]] = []


class Match(_Told):
    """A passage of a source that supports the answer; its span lies inside the source's."""

    span: Span
    text: str | None = None
    highlight: Highlight | None = None


class Source(_Told):
    """One place that was read. ``score`` ranks it; it is no probability."""

    ref: str
    span: Span
    path: str
    content_type: str
    score: float
    cited: bool
    matches: list[Match] | None = None


class Credits(_Told):
    """What a request was metered at."""

    credits: Annotated[int, Field(ge=0)] = 0


class AnswerResult(_Told):
    """An answer with its sources, and, in the library alone, how it came about.

    ``found``, ``partial``, ``partial_reasons``, ``notes``, ``warnings`` and ``trace`` never go over
    the wire; ``partial_reasons`` are the words of the header ``x-answer-partial``, ``warnings`` the
    class and the text of what was warned about. As a string, as in a prompt, it is its answer.
    """

    request_id: str
    answer: str
    effort: Effort | str
    image_description: str | None = None
    sources: list[Source] = []
    usage: Credits = Credits()
    found: Annotated[bool, Field(exclude=True)] = True
    partial: Annotated[bool, Field(exclude=True)] = False
    partial_reasons: Annotated[list[str], Field(exclude=True)] = []
    notes: Annotated[dict[str, Any], Field(exclude=True)] = {}
    warnings: Annotated[list[tuple[str, str]], Field(exclude=True)] = []
    trace: Annotated[Any, Field(exclude=True, repr=False)] = None

    def __str__(self) -> str:
        return self.answer

    def wire(self) -> dict[str, Any]:
        """The JSON members of the contract; ``image_description`` is said also when null."""
        return {"image_description": None, **super().wire()}


class Hit(_Told):
    """One place that a search found."""

    span: Span
    path: str
    content_type: str
    score: float
    text: str | None = None


class SearchResult(_Told):
    """What a search found, best first."""

    request_id: str
    results: list[Hit] = []
    usage: Credits = Credits()
    partial_reasons: Annotated[list[str], Field(exclude=True)] = []


class SpanPart(_Told):
    """A span's text, or why there is none: not_found, out_of_range, pages_mismatch, too_large.

    In place of the text a service may give the ``url`` it can be fetched from, without a key, until
    ``expires_at`` (RFC 3339, UTC).
    """

    span: Span
    text: str | None = None
    content_type: str | None = None
    size_bytes: int | None = None
    url: Annotated[str | None, Field(repr=False)] = None
    expires_at: str | None = None
    error: str | None = None


class ReadSpansResult(_Told):
    """The parts of the spans asked for, in their order."""

    request_id: str
    parts: list[SpanPart] = []
