"""The most requests a read can need, if every reply is as long as its cap."""

from harness_core.models.registry import model_info
from harness_core.models.tokenizers import count_tokens
from harness_core.reading.job import Job
from harness_core.reading.merging import MAX_LEVELS
from harness_core.reading.prompts import fence


def merge_tree(job: Job, pieces: int, piece: int, answer: int, room: int | None = None) -> int:
    """Merge requests over that many pieces of that many tokens; 0 for one piece.

    ``room`` is what one merge can carry (none: as the job has it).
    """
    if pieces < 2:
        return 0
    most = model_info(job.model).max_output
    piece, answer = min(piece, most), min(answer, most)
    tag = count_tokens(fence("findings", "", more=' n="999"') + "\n\n", job.model)
    left = job.room("merge", restate="never") if room is None else room
    return merge_calls(pieces, piece, answer, left, tag)


def merge_calls(pieces: int, piece: int, answer: int, room: int, tag: int) -> int:
    """Requests of a merge tree, from sizes alone (tokens)."""
    calls = 0
    for _ in range(MAX_LEVELS):
        if pieces <= 1:
            break
        per = max(1, room // (piece + tag))
        if pieces <= per:
            calls += 1
            break
        groups = -(-pieces // per)
        if per >= 2:
            calls += pieces // per + (pieces % per >= 2)
        if groups >= pieces:
            break
        pieces, piece = groups, answer
    return calls


def summary_levels(pieces: int, summary: int, room: int, fan: int, levels: int) -> int:
    """Requests of summaries of summaries until they fit, and the answer (sizes in tokens)."""
    calls, current, level = pieces, pieces, 1
    while current * summary > room and level < levels:
        level += 1
        shrunk = -(-current // fan)
        calls += shrunk
        if shrunk >= current:
            break
        current = shrunk
    return calls + 1
