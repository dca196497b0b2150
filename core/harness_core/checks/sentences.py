# ruff: noqa: RUF001 - marks and letters of other scripts are the subject here
"""Where the sentences of a folded text end and begin."""

from bisect import bisect_left, bisect_right

import regex

_END = regex.compile(
    r"""(?: (?!(?<=\bno)\.\s+[\#\p{L}-]*\d) [.!?;:]+ [)\]}"'*_»]* (?=\s|$)
      | [。！？；：｡．] ["')\]}）」』】]* )""",
    regex.VERBOSE,
)
_ASIDE = regex.compile(r"\([^()]{0,199}[^().!?]\)|\[[^\[\]]{0,199}[^\[\].!?]\]")
_OPENING = regex.compile(r"""[\s"'*_#>•‣◦▪●(\[{（「『【-]*""")
_LONGEST_OPENING = 20


class Sentences:
    """The sentence ends of one folded text, found once."""

    def __init__(self, norm: str) -> None:
        self.norm = norm
        asides = [found.span() for found in _ASIDE.finditer(norm)]
        starts = [start for start, _ in asides]
        self.ends: list[int] = []
        for found in _END.finditer(norm):
            at = bisect_right(starts, found.start()) - 1
            if at < 0 or found.end() >= asides[at][1]:
                self.ends.append(found.end())

    def first_end(self, start: int, stop: int) -> int | None:
        """Where the first sentence ends between the two places, either included."""
        at = bisect_left(self.ends, start)
        return self.ends[at] if at < len(self.ends) and self.ends[at] <= stop else None

    def begins(self, at: int) -> bool:
        """Whether a sentence begins at ``at``, opening marks aside."""
        last = bisect_right(self.ends, at) - 1
        start = self.ends[last] if last >= 0 else 0
        return at - start <= _LONGEST_OPENING and bool(_OPENING.fullmatch(self.norm, start, at))
