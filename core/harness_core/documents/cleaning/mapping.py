"""The output of a document-scoped cleaner is found again in the blocks it came from."""

from collections.abc import Callable, Sequence

Line = tuple[int, str]  # (block, text)


def rewrite(texts: Sequence[str], clean: Callable[[str], str]) -> list[str] | None:
    """``clean`` of the blocks joined by blank lines, per block; None where it cannot be told.

    A surviving line goes back to its block, whole or cut short; where every line has its
    successor each block takes its own; a block of which nothing is left is empty.
    """
    joined = "\n\n".join(texts)
    cleaned = clean(joined)
    if cleaned == joined:
        return list(texts)
    lines = _lines(texts)
    output = cleaned.split("\n")
    survivors = _survivors(lines, output, cut=False) or _survivors(lines, output, cut=True)
    if survivors is not None:
        return _gathered(survivors, len(texts))
    if len(output) == len(lines):
        moved = [(block, line) for (block, _), line in zip(lines, output, strict=True)]
        return _gathered(moved, len(texts))
    return None


def _lines(texts: Sequence[str]) -> list[Line]:
    lines: list[Line] = []
    for block, text in enumerate(texts):
        if block:
            lines.append((block, ""))  # the joining blank line
        lines.extend((block, line) for line in text.split("\n"))
    return lines


def _survivors(lines: list[Line], output: list[str], *, cut: bool) -> list[Line] | None:
    """The output's lines in order among the original ones, blank original ones kept."""
    kept: list[Line] = []
    originals = iter(lines)
    for wanted in output:
        if not wanted.strip():
            continue
        for block, line in originals:
            if line == wanted or (cut and line.startswith(wanted)):
                kept.append((block, wanted))
                break
            if not line.strip():
                kept.append((block, ""))
        else:
            return None
    return kept


def _gathered(lines: Sequence[Line], blocks: int) -> list[str]:
    gathered: list[list[str]] = [[] for _ in range(blocks)]
    for block, line in lines:
        gathered[block].append(line)
    return ["\n".join(kept).strip("\n") for kept in gathered]
