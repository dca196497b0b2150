"""Premise verdicts in merges: marked on the way in, read again on the way out."""

from harness_core.checks.premise import read_premise
from harness_core.reading.job import Job
from harness_core.reading.merging import Merged
from harness_core.reading.prompts import FALSE_PREMISE
from harness_core.reading.verdicts import Verdict


def as_finding(verdict: Verdict) -> str:
    """A verdict as a merge sees it: a correction keeps its marker."""
    return verdict.text if verdict.premise is None else f"{FALSE_PREMISE}: {verdict.premise}"


def read_merged(job: Job, merged: Merged) -> tuple[str, str | None]:
    """The text of a merge and the premise verdict in it.

    A merge that failed gives its findings joined, which is no verdict: markers are taken out.
    """
    if not job.spec.premise:
        return merged.text, None
    if not merged.ok:
        return merged.text.replace(f"{FALSE_PREMISE}: ", ""), None
    correction = read_premise(merged.text)
    return (merged.text, None) if correction is None else (correction, correction)
