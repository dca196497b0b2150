"""Passages that a model copies out of chunks: asked for, read, and laid out for an answer."""

from collections.abc import Sequence

from harness_core.answer import Evidence
from harness_core.checks.premise import is_none_reply
from harness_core.documents.types import Chunk
from harness_core.messages import Reply, Request
from harness_core.reading.job import Job


def copying(job: Job, chunks: Sequence[Chunk], body: str, label: str) -> Request:
    """The request that copies out of ``body``, showing ``chunks``, what bears on the question."""
    task = job.task("extract", [(chunk.chunk_id, chunk.text) for chunk in chunks])
    spec = job.spec
    return job.asking(
        "extract", label, body, cap=spec.max_chunk_tokens, task=task, model=spec.skim_model
    )


def copied(reply: Reply) -> str | None:
    """The passages of a reply; None when it has none, or says so."""
    text = reply.text.strip()
    nothing = not reply.usable or is_none_reply(text) or not any(map(str.isalnum, text))
    return None if nothing else text


def labelled(row: Evidence) -> str:
    """A copied passage under the label by which an answer can cite it."""
    return f"[chunk {row.chunk_id}]\n{row.text}"
