"""The main job on the bundled annual report: an answer, where it stands, its cost, a recording.

It runs offline with the extractive default, which copies the sentence that fits best. Give it
another question as an argument.
"""

import sys
import tempfile
from pathlib import Path

from harness_core import (
    Answer,
    ExtractiveClient,
    ReplayClient,
    Trace,
    answer_document,
    example_document,
)

QUESTION = "How big was the deficit of the pension scheme?"
CHUNK_TOKENS = 120  # small chunks, so that an answer has one page


def cited_places(answer: Answer) -> str:
    """The chunks that the answer cites, with their pages."""
    cited = [row for row in answer.evidence if f"[chunk {row.chunk_id}]" in answer.answer]
    return ", ".join(f"chunk {row.chunk_id}, page {row.page}" for row in cited) or answer.places()


def main(question: str = QUESTION) -> None:
    """Ask, print, and replay."""
    report = example_document("pdf")
    recording = Path(tempfile.mkdtemp(prefix="harness-demo-")) / "run.jsonl"
    answer = answer_document(
        report,
        question,
        "needle",
        client=ExtractiveClient(),
        trace=Trace(path=recording, purpose="demo"),
        max_tokens=CHUNK_TOKENS,
    )
    totals = answer.totals()
    print(f"Document   {Path(report).name}")
    print(f"Question   {question}")
    print(f"Answer     {answer.wording()}")
    print(f"Stands at  {cited_places(answer)}")
    print(f"Complete   {'no: ' + '; '.join(answer.reasons()) if answer.partial else 'yes'}")
    print(
        f"Bill       ${totals.usd:.4f} for {totals.calls} request(s), {totals.tokens_in} tokens in"
    )
    print(f"Recorded   {recording}")

    client = ReplayClient(recording)
    again = answer_document(report, question, "needle", client=client, max_tokens=CHUNK_TOKENS)
    same = again.answer == answer.answer
    print(f"Replayed   {'the same answer, nothing sent' if same else 'a DIFFERENT answer'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
