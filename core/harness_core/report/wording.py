"""Text cut to what a person looks at."""

_BEFORE, _AFTER = 30, 70


def clipped(text: str, most: int = 160) -> str:
    """``text`` on one line, at most ``most`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def around_difference(one: str, other: str) -> tuple[str, str]:
    """Both texts around the first place where they differ."""
    pairs = zip(one, other, strict=False)
    shorter = min(len(one), len(other))
    place = next((i for i, (a, b) in enumerate(pairs) if a != b), shorter)
    return _cut(one, place), _cut(other, place)


def _cut(text: str, place: int) -> str:
    start, stop = max(0, place - _BEFORE), place + _AFTER
    return f"{'…' if start else ''}{text[start:stop]}{'…' if stop < len(text) else ''}"
