"""Cutting 10 MB of prose into chunks of at most 400 tokens, beside LangChain and LlamaIndex.

Every round has a text of its own, generated from a seed, so that no round finds counts of the one
before. The others count with tiktoken (o200k_base), as their users do.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any

from bench.encodings import use_shipped
from bench.timing import ROUNDS, interleaved, ratio
from harness_core.documents.types import Block, Chunks, Document
from harness_core.flows.types import Work
from harness_core.segmenting import segment_flow

CAP = 400
CHARS = 10_000_000
METHODS = ("paragraph", "sentence", "recursive", "fixed")


def prose(seed: int, chars: int) -> list[str]:
    """Paragraphs of a few sentences, words by a Zipf law."""
    dice = random.Random(seed)  # noqa: S311 - text, no secret
    vocabulary = [
        "".join(dice.choices("etaoinshrdlu", k=dice.randint(2, 9))) for _ in range(20_000)
    ]
    weights = [1 / rank for rank in range(1, len(vocabulary) + 1)]
    paragraphs: list[str] = []
    while chars > 0:
        sizes = [dice.randint(6, 26) for _ in range(dice.randint(3, 9))]
        words = [dice.choices(vocabulary, weights, k=size) for size in sizes]
        paragraphs.append(" ".join(f"{' '.join(some).capitalize()}." for some in words))
        chars -= len(paragraphs[-1]) + 2
    return paragraphs


def cut(method: str, document: Document) -> Chunks:
    """The chunks of a document by a segmenter that asks nobody."""
    flow = segment_flow(document, {"method": method, "max_tokens": CAP})
    done: Any = None
    while True:
        try:
            todo = flow.send(done)
        except StopIteration as end:
            chunks: Chunks = end.value
            return chunks
        assert isinstance(todo, Work)
        done = todo.function()


def rows(chars: int = CHARS) -> list[dict[str, Any]]:
    """One row per splitter; how many times faster than each of the others."""
    texts = [prose(seed, chars) for seed in range(ROUNDS)]
    functions: dict[str, Callable[[], object]] = {
        method: partial(next, _cut_each(method, texts)) for method in METHODS
    }
    functions |= {name: partial(next, _each(split, texts)) for name, split in _others().items()}
    seconds = interleaved(functions)
    return [_row(name, seconds) for name in functions]


def _others() -> Mapping[str, Callable[[str], object]]:
    import tiktoken
    from langchain_text_splitters import RecursiveCharacterTextSplitter
    from llama_index.core.node_parser import SentenceSplitter

    use_shipped()
    encode = tiktoken.get_encoding("o200k_base").encode_ordinary
    recursive = RecursiveCharacterTextSplitter(
        chunk_size=CAP, chunk_overlap=0, length_function=lambda text: len(encode(text))
    )
    sentence = SentenceSplitter(chunk_size=CAP, chunk_overlap=0, tokenizer=encode)
    return {
        "LangChain RecursiveCharacterTextSplitter": recursive.split_text,
        "LlamaIndex SentenceSplitter": sentence.split_text,
    }


def _cut_each(method: str, texts: list[list[str]]) -> Iterator[Chunks]:
    for number in count():
        blocks = tuple(
            Block(text=text, block_id=place)
            for place, text in enumerate(texts[number % len(texts)], 1)
        )
        yield cut(method, Document(blocks=blocks, source="prose", label="prose"))


def _each(split: Callable[[str], object], texts: list[list[str]]) -> Iterator[object]:
    for number in count():
        yield split("\n\n".join(texts[number % len(texts)]))


def _row(name: str, seconds: Mapping[str, list[float]]) -> dict[str, Any]:
    langchain, llama_index = list(seconds)[-2:]
    row: dict[str, Any] = {"what": f"{name}, {CAP} tokens", "s": min(seconds[name])}
    if name in METHODS:
        row["LangChain / ours"] = ratio(seconds[langchain], seconds[name])
        row["LlamaIndex / ours"] = ratio(seconds[llama_index], seconds[name])
    return row


if __name__ == "__main__":
    for row in rows():
        print(row)
