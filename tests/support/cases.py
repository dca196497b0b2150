"""Where tests name the numbered cases that they are for."""

import tokenize
from collections.abc import Iterator
from pathlib import Path


def comments_and_strings(path: Path) -> Iterator[tuple[bool, str]]:
    """Comments and strings of a file; True for a comment."""
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                yield token.type == tokenize.COMMENT, token.string
