# ruff: noqa: RUF001 - marks and letters of other scripts are the subject here
"""Replies that are a verdict instead of an answer: a false premise, or nothing to copy."""

import regex

_DECORATION = r"[\p{P}\p{S}\p{Z}\s]*+"
_CLOSING = r"[\p{Pe}\p{Pf}\p{Pi}\"'`*_]*+"
_PREMISE = regex.compile(
    rf"""(?P<opening>{_DECORATION}) FALSE[_\ ]PREMISE (?P<closing>{_CLOSING} [^\S\r\n\u2028\u2029]*+
    (?: [:：] | [\p{{Pd}}--\-] | -(?=\s|$) | [\r\n\u2028\u2029] | $ )
    {_CLOSING}) (?P<said>.*+)""",
    regex.IGNORECASE | regex.VERBOSE | regex.VERSION1 | regex.DOTALL,
)
_NONE = regex.compile(rf"{_DECORATION}NONE{_DECORATION}", regex.IGNORECASE)
_VISIBLE = regex.compile(r"[\p{L}\p{N}]")
_PAIRED = {
    "*": "*",
    "_": "_",
    "`": "`",
    '"': '"',
    "'": "'",
    "“": "”",
    "«": "»",
    "「": "」",
    "‘": "’",
}


def read_premise(text: str | None) -> str | None:
    """What a reply says instead of what the question takes for granted, without the marker.

    None for a reply that does not open with the marker, and for a marker that nothing follows.
    """
    found = _PREMISE.fullmatch((text or "").strip())
    if found is None or not _VISIBLE.search(found["said"]):
        return None
    said = str(found["said"]).strip()
    for mark in reversed(found["opening"]):
        closing = _PAIRED.get(mark)
        if closing is not None and closing not in found["closing"]:
            said = said.removesuffix(closing)
    return said


def is_bare_premise(text: str | None) -> bool:
    """Whether a reply is the marker of a false premise and nothing else: no verdict, no answer."""
    found = _PREMISE.fullmatch((text or "").strip())
    return found is not None and not _VISIBLE.search(found["said"])


def is_none_reply(text: str | None) -> bool:
    """Whether a reply is the word NONE alone, in any decoration and case."""
    return text is not None and _NONE.fullmatch(text) is not None
