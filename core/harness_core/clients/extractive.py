"""A client without a language model: it answers with sentences of the text it is shown.

A deterministic, offline baseline. It reads ``Request.task``, never the prompt, and says that it
does not know (the sentinel) rather than guess.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness_core.client import BaseClient, OnText
from harness_core.clients.extracts.fields import filled, read_fields
from harness_core.clients.extracts.matching import ENOUGH, Match, matches, told
from harness_core.clients.extracts.units import Unit, units
from harness_core.clients.extracts.words import content
from harness_core.messages import SENTINEL, Reply, Request, Task

MODEL = "extractive"
NOTHING = "NONE"

_COPIED = 4  # passages that one extraction copies at the most
_NEAR = 0.5  # of the best score, for a passage to be copied beside it
_TABLE_CHARACTERS = 800  # from a head row to a row, that one extraction copies whole
_SUMMARY_TOKENS = 200


class ExtractiveClient(BaseClient):
    """Answers from ``Request.task`` with sentences and table rows, word for word.

    BM25 over the sentences of the excerpts, with regard to the figures, dates and names that a
    question asks for. The model id is ``extractive``; it costs nothing, and chunks are
    ranked by lexical vectors. A request without a task fails: this client reads no prompts.
    """

    model = MODEL
    api = "extractive"
    base_url = "extractive://"
    identity = "extractive-1"
    unpriced_ok = True
    embedder = "lexical"

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """Answer at once; ``on_text`` is given the whole text."""
        known: dict[str, Any] = {"model": request.model or MODEL, "label": request.label}
        never: dict[str, Any] = {"sent": False, "attempts": 0, **known}
        if request.task is None:
            return Reply.failed(
                "the extractive client answers from the task of a reader's request and reads no "
                "prompt; use a client of a language model for requests of your own",
                **never,
            )
        answer = _KINDS.get(request.task.kind)
        if answer is None:
            return Reply.failed(
                f"the extractive client knows no task {request.task.kind!r}", **never
            )
        reply = Reply(ok=True, text=answer(request.task, request), finish_reason="stop", **known)
        if on_text is not None:
            on_text(reply.text)
        return reply

    async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """``send``: it waits for nothing."""
        return self.send(request, on_text=on_text)

    def __repr__(self) -> str:
        return "ExtractiveClient()"


def _best(task: Task) -> Match | None:
    found = matches(task.question, units(task.excerpts))
    return next((match for match in found if match.enough), None)


def _shown(task: Task, unit: Unit) -> str:
    cited = task.more.get("cite") and unit.source is not None
    return f"{unit.shown} [chunk {unit.source}]" if cited else unit.shown


def _answer(task: Task, request: Request) -> str:
    best = _best(task)
    text = SENTINEL if best is None else _shown(task, best.unit)
    return text if request.schema is None else _as_json(request, {"answer": text})


def _extract(task: Task, _request: Request) -> str:
    found = [match for match in matches(task.question, units(task.excerpts)) if match.enough]
    near = [match.unit for match in found if match.score >= _NEAR * found[0].score][:_COPIED]
    texts = [text for _, text in task.excerpts]
    kept = sorted(near, key=lambda unit: unit.place, reverse=True)
    passages: list[str] = []
    for unit in kept:  # last first, so that a table is copied once, down to its last row
        passage = _passage(unit, texts)
        if not any(passage in other for other in passages):
            passages.append(passage)
    return "\n\n".join(reversed(passages)) or NOTHING


def _passage(unit: Unit, texts: Sequence[str]) -> str:
    """The unit word for word; a row with its table from the head row on, if that is short."""
    for text in texts if unit.head else ():
        start = text.find(unit.head)
        end = text.find(unit.text, start)
        if 0 <= start < end and end - start < _TABLE_CHARACTERS:
            return text[start : end + len(unit.text)]
    return unit.text


def _summarise(task: Task, request: Request) -> str:
    """What bears on the question first, then the beginning; shown in the order of the text."""
    from harness_core.models.tokenizers import count_tokens

    every = units(task.excerpts)
    ranked = [match.unit for match in matches(task.question, every)]
    room = min(request.max_output or _SUMMARY_TOKENS, _SUMMARY_TOKENS)
    kept: set[int] = set()
    for unit in dict.fromkeys((*ranked, *every)):
        room -= count_tokens(unit.text)
        if room < 0 and kept:
            break
        kept.add(unit.place)
    return "\n".join(unit.text for unit in every if unit.place in kept) or SENTINEL


def _score(task: Task, request: Request) -> str:
    found = matches(task.question, units(task.excerpts))
    best = max(found, key=lambda match: match.covered, default=None)
    score = 0 if best is None else round(10 * best.covered)
    return _as_json(request, {"score": score, "reason": told(best)})


def _merge(task: Task, request: Request) -> str:
    """The best of the findings; each was enough for its own excerpt, so none is called too weak."""
    texts = [(source, text) for source, text in task.excerpts if not _says_nothing(text)]
    found = matches(task.question, units(texts))
    text = found[0].unit.shown if found else texts[0][1] if texts else SENTINEL
    if request.schema is None:
        return text
    chosen = next((place for place, (_, one) in enumerate(task.excerpts, 1) if text in one), 0)
    return _as_json(request, {"answer": text, "choice": chosen})


def _revise(task: Task, _request: Request) -> str:
    """The draft, unless a sentence of the new excerpt is a better answer."""
    draft = str(task.more.get("draft", ""))
    old = units([(None, "" if _says_nothing(draft) else draft)])
    new = units(task.excerpts)
    ranked = matches(task.question, [*old, *new])
    best = next((match.unit for match in ranked if match.enough), None)
    if best is not None and best not in old:
        return _shown(task, best)
    return draft if old else SENTINEL


def _plan(task: Task, request: Request) -> str:
    """Read what seems to hold the answer, skim what touches it; skip only beside those."""
    found = {
        place: max((one.covered for one in matches(task.question, units([pair]))), default=0.0)
        for place, pair in enumerate(task.excerpts)
    }
    most = max(found.values(), default=0.0)
    sections = [
        {
            "id": task.excerpts[place][0] or place + 1,
            "treatment": _treatment(covered, most),
            "reason": f"its outline carries {covered:.0%} of the question's words",
        }
        for place, covered in found.items()
    ]
    return _as_json(request, {"sections": sections})


def _treatment(covered: float, most: float) -> str:
    if covered and (covered >= ENOUGH or covered == most):
        return "read"
    return "skim" if covered or not most else "skip"


def _step(task: Task, request: Request) -> str:
    best = _best(task)
    if best is not None:
        quoted = [{"chunk": best.unit.source, "text": best.unit.text}]
        answer = _shown(task, best.unit)
        given = {"can_answer": True, "answer": answer, "next_query": "", "quotations": quoted}
        return _as_json(request, given)
    query = " ".join(content(task.question)) or task.question
    return _as_json(request, {"can_answer": False, "answer": "", "next_query": query})


def _screen(task: Task, request: Request) -> str:
    every = units(task.excerpts)
    for criterion in _listed(task.more.get("exclude")):
        if (quote := _meets(criterion, every)) is not None:
            return _decided(request, "exclude", criterion, quote)
    wanted = _listed(task.more.get("include"))
    quotes = [_meets(criterion, every) for criterion in wanted]
    if wanted and all(quote is not None for quote in quotes):
        return _decided(request, "include", wanted[0], quotes[0])
    return _decided(request, "unclear", None, None)


def _meets(criterion: str, every: Sequence[Unit]) -> str | None:
    found = matches(criterion, every)
    return next((match.unit.text for match in found if match.enough), None)


def _decided(request: Request, decision: str, criterion: str | None, quote: str | None) -> str:
    reason = "a sentence shares the words of a criterion" if quote else "no criterion is settled"
    given = {"decision": decision, "reason": reason, "criterion": criterion, "quote": quote}
    return _as_json(request, given)


def _fields(task: Task, request: Request) -> str:
    return _as_json(request, read_fields(request.schema or {}, units(task.excerpts)))


def _listed(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else [str(one) for one in given or ()]


def _says_nothing(text: str) -> bool:
    from harness_core.answer import is_not_found

    return is_not_found(text) or text.strip() == NOTHING


def _as_json(request: Request, given: Mapping[str, Any]) -> str:
    return json.dumps(filled(request.schema, given), ensure_ascii=False)


_KINDS: Mapping[str, Callable[[Task, Request], str]] = {
    "answer": _answer,
    "extract": _extract,
    "summarise": _summarise,
    "score": _score,
    "merge": _merge,
    "revise": _revise,
    "plan": _plan,
    "step": _step,
    "screen": _screen,
    "fields": _fields,
}
