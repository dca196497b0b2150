"""Which paragraph styles of a Word file are headings."""

import re
from dataclasses import dataclass, field
from typing import Self
from xml.etree.ElementTree import Element

_NAME = re.compile(r"(?:heading\s*[1-9]|title)", re.IGNORECASE)
_UNDEFINED = re.compile(r"(?:heading|title)", re.IGNORECASE)
_HOPS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Style:
    name: str
    level: int | None
    based_on: str | None


@dataclass(frozen=True, slots=True)
class Styles:
    """The paragraph styles by id."""

    known: dict[str, _Style] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Element | None) -> Self:
        """The styles of ``styles.xml``, whose names are not translated while ids are."""
        found: dict[str, _Style] = {}
        for style in () if root is None else root.iter("style"):
            found[style.get("styleId", "")] = _Style(
                name=_value(style.find("name")) or "",
                level=outline_level(style.find("pPr")),
                based_on=_value(style.find("basedOn")),
            )
        return cls(found)

    def is_heading(self, properties: Element | None) -> bool:
        """Whether a paragraph of these properties is a heading."""
        own = outline_level(properties)
        if own is not None:
            return own <= 8
        style = None if properties is None else _value(properties.find("pStyle"))
        if style is None:
            return False
        if style not in self.known:
            return _UNDEFINED.match(style) is not None
        return self._inherits(style)

    def _inherits(self, style: str) -> bool:
        at: str | None = style
        if _NAME.fullmatch(self.known[style].name):
            return True
        for _ in range(_HOPS):
            if at is None or at not in self.known:
                return False
            if (level := self.known[at].level) is not None:
                return level <= 8
            at = self.known[at].based_on
        return False


def outline_level(properties: Element | None) -> int | None:
    """The outline level of paragraph properties, from 0; 9 is body text."""
    value = _value(properties.find("outlineLvl")) if properties is not None else None
    return int(value) if value is not None and value.isdigit() else None


def _value(element: Element | None) -> str | None:
    return None if element is None else element.get("val")
