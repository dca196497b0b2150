"""A typed form filled from every chunk, and reconciled."""

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel
from pydantic import Field as ModelField

from harness_core.answer import Answer
from harness_core.calls.trace import Trace
from harness_core.clients.mock import MockClient
from harness_core.documents.types import Chunks
from harness_core.errors import CallCapWarning, ExtractUnresolvedWarning, NoFieldsError
from harness_core.flows.types import Work
from harness_core.messages import Reply
from harness_core.pipeline import read
from harness_core.reading.extraction_fields import Field
from harness_core.reading.flow import make_job
from harness_core.reading.registry import find_reader
from harness_core.reading.spec import ReadSpec
from harness_core.reading.verifying import verify_evidence
from tests.support.reading import (
    asked,
    chunks_of,
    client_of,
    cut_off,
    labels,
    prompt,
    read_unchecked,
    system,
    window,
)

QUESTION = "Extract the trial's design."
N = Field("n", "integer", "patients enrolled")
DESIGN = Field("design", description="the study design")
HUNDRED, MORE = "We enrolled 100 patients.", "In all, 250 patients took part."
CHUNKS = chunks_of(HUNDRED, MORE, "The cafeteria was closed.")


def form(**given: Any) -> dict[str, Any]:
    return {name.replace("_q", "__quote"): value for name, value in given.items()}


def extracted(
    replies: Any, fields: Any = (N,), chunks: Chunks = CHUNKS, **more: Any
) -> tuple[Answer, MockClient]:
    stages = replies if isinstance(replies, dict) and "extract.chunk" in replies else None
    client = client_of(stages or {"extract.chunk": replies})
    spec = {"reader": "extract", "fields": fields, **more}
    return read(chunks, QUESTION, client, spec), client


def test_every_chunk_is_asked_for_the_whole_form() -> None:
    replies = [form(n=100, n_q=HUNDRED, design="RCT", design_q=None), {}, {}]
    answer, client = extracted(replies, (N, DESIGN), skim_model=window(5000))
    assert labels(client) == ["extract.chunk"] * 3
    call = client.calls()[0]
    assert call.messages[1].content == f"Question: {QUESTION}"
    assert "- n (integer): patients enrolled" in call.messages[2].content
    assert "[chunk 1]\n" + HUNDRED in call.messages[3].content
    assert (call.params["schema_name"], call.params["model"]) == ("extraction", window(5000))
    assert call.params["max_output"] == 400  # 700, and what the model can give
    schema = call.params["schema"]
    assert schema["required"] == ["n", "n__quote", "design", "design__quote"]
    assert schema["properties"]["n"]["type"] == ["integer", "null"]
    assert json.loads(answer.answer) == {"n": 100, "design": "RCT"}


def test_a_value_with_its_quotation_is_verified_and_whole() -> None:
    answer, _ = extracted([form(n=100, n_q=HUNDRED), {}, {}])
    assert (answer.answer, answer.partial, answer.chunks_used) == ('{"n":100}', False, [1])
    (row,) = answer.evidence
    assert (row.field, row.text, row.kind, row.verified) == ("n", HUNDRED, "extracted", True)
    assert row.source_text == HUNDRED
    assert answer.notes == {
        "chunks": 3, "fields": 1, "filled": 1, "not_reported": [], "unknown": [],
        "unsupported": [], "dropped_unverified": [], "unreadable": [], "unresolved": {},
        "conflicts": {}, "failed_calls": 0, "truncated_calls": 0, "record": {"n": 100},
    }  # fmt: skip


@pytest.mark.parametrize("fields", [None, [], ()])
def test_without_fields_nothing_is_asked(fields: Any) -> None:
    # readers 126
    client = client_of()
    with pytest.raises(NoFieldsError):
        read(CHUNKS, QUESTION, client, {"reader": "extract", "fields": fields})
    assert client.calls() == []


@pytest.mark.parametrize("reply", [{}, form(n=None, n_q=None), {"n": "not reported"}, {"n": []}])
def test_filling_nothing_is_a_whole_negative(reply: dict[str, Any]) -> None:
    # readers 127, core 53
    answer, _ = extracted(json.dumps(reply))
    assert (answer.answer, answer.partial) == ('{"n":null}', False)
    assert (answer.notes["failed_calls"], answer.notes["filled"]) == (0, 0)
    assert (answer.notes["not_reported"], answer.notes["unknown"]) == (["n"], [])


@pytest.mark.parametrize("reply", ["prose", "[]", "7", '{"other": 1}', RuntimeError("down")])
def test_a_reply_that_is_not_the_form_is_a_failure(reply: Any) -> None:
    # readers 128, core 53
    answer, _ = extracted([reply, {}, {}])
    assert (answer.notes["failed_calls"], answer.partial) == (1, True)
    assert (answer.notes["not_reported"], answer.notes["unknown"]) == ([], ["n"])


BOTH = [form(n=100, n_q=HUNDRED), form(n=250, n_q=MORE), {}]


def test_the_earliest_of_two_values_stands_and_the_conflict_is_named() -> None:
    # readers 129
    answer, client = extracted(BOTH)
    assert answer.notes["record"] == {"n": 100}
    assert answer.notes["conflicts"] == {"n": [100, 250]}
    assert (len(client.calls()), answer.partial) == (3, False)


def test_a_model_may_settle_a_conflict() -> None:
    # readers 129
    stages = {"extract.chunk": BOTH, "extract.resolve": {"choice": 2}}
    answer, client = extracted(stages, resolve="model")
    assert answer.notes["record"] == {"n": 250}
    assert labels(client) == ["extract.chunk"] * 3 + ["extract.resolve"]
    assert [row.chunk_id for row in answer.evidence] == answer.chunks_used == [2]
    assert (answer.partial, answer.notes["unresolved"]) == (False, {})
    call = asked(client, "extract.resolve")[0]
    assert (call.params["schema_name"], call.params["max_output"]) == ("conflict", 100)
    assert f'1. 100 (chunk 1): "{HUNDRED}"' in prompt(call)
    assert f'2. 250 (chunk 2): "{MORE}"' in prompt(call)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"choice": 0}, "rejected"), ({"choice": 3}, "failed"), ({"choice": "first"}, "failed"),
        ({"choices": 2}, "failed"), ("prose", "failed"), (RuntimeError("down"), "failed"),
    ],
)  # fmt: skip
def test_a_conflict_left_unresolved_keeps_the_first_value_and_says_so(said: Any, why: str) -> None:
    with pytest.warns(ExtractUnresolvedWarning) as warned:
        answer, _ = extracted({"extract.chunk": BOTH, "extract.resolve": said}, resolve="model")
    assert len(warned) == 1
    assert (answer.notes["record"], answer.notes["unresolved"]) == ({"n": 100}, {"n": why})
    assert answer.partial
    assert answer.evidence[0].verified is (why != "rejected")
    assert answer.notes["failed_calls"] == 0
    assert any("n" in reason for reason in answer.reasons())
    if why == "rejected":
        assert answer.notes["unsupported"] == ["n"]
        assert [check.verified for check in verify_evidence(answer)] == [False]


def test_a_failed_choice_is_marked_as_recovered() -> None:
    stages = {"extract.chunk": BOTH, "extract.resolve": RuntimeError("down")}
    with pytest.warns(ExtractUnresolvedWarning):
        answer, _ = extracted(stages, resolve="model")
    assert (answer.totals().errors, answer.totals().recovered) == (1, 1)


def test_a_choice_that_a_limit_kept_back_is_no_failure() -> None:
    client = client_of({"extract.chunk": BOTH})
    with pytest.warns(ExtractUnresolvedWarning, match="limit"):
        answer = read_unchecked(CHUNKS, client, 3, "extract", fields=(N,), resolve="model")
    assert (answer.notes["unresolved"], answer.partial) == ({"n": "limit"}, True)
    assert answer.notes["record"] == {"n": 100}


def test_a_cap_is_foreseen_and_what_was_not_sent_cannot_be_cited() -> None:
    client = client_of({"extract.chunk": form(design="see [chunk 1] and [chunk 3]")})
    with pytest.warns(CallCapWarning):
        answer = read_unchecked(CHUNKS, client, 1, "extract", fields=(DESIGN,))
    assert answer.notes["cited_unknown"] == [3]
    assert (answer.notes["failed_calls"], answer.partial) == (0, True)


def test_a_value_without_a_quotation_is_kept_and_unsupported() -> None:
    # readers 130, 134
    answer, _ = extracted([form(n=100, n_q=" "), {}, {}], (N, DESIGN))
    assert (answer.notes["record"]["n"], answer.evidence) == (100, [])
    assert (answer.notes["unsupported"], answer.partial) == (["n"], True)


def test_an_invented_quotation_is_kept_and_said() -> None:
    # readers 131
    answer, _ = extracted([form(n=100, n_q="We enrolled exactly 100."), {}, {}])
    assert answer.notes["record"] == {"n": 100}
    assert answer.evidence[0].verified is False
    assert (answer.notes["unverified_evidence"], answer.partial) == (1, True)


def test_only_supported_values_stand_when_quotations_are_required() -> None:
    # readers 132, L14
    replies = [form(n=100, n_q="invented words", design="RCT", design_q="We enrolled"), {}, {}]
    answer, _ = extracted(replies, (N, DESIGN), require_quote=True)
    assert json.loads(answer.answer) == {"n": None, "design": "RCT"}
    assert answer.notes["dropped_unverified"] == ["n"]
    assert [row.field for row in answer.evidence] == ["design"]
    assert answer.partial
    assert "n" not in answer.notes["not_reported"]


def test_a_sentence_that_does_not_state_the_value_is_no_support() -> None:
    # readers 133
    chunks = chunks_of("We enrolled 120 patients.")
    reply = form(n=5000, n_q="We enrolled 120 patients.")
    answer, _ = extracted(reply, chunks=chunks, verify=True)
    (row,) = answer.evidence
    assert (row.verified, row.match) == (False, 1)
    assert [(c.verified, c.match) for c in verify_evidence(answer)] == [(False, 1)]
    assert answer.notes["unsupported"] == ["n"]


def test_a_later_chunk_that_quotes_the_same_value_supports_it() -> None:
    replies = [form(design="RCT", design_q=None), form(design="rct.", design_q=MORE), {}]
    answer, _ = extracted(replies, (DESIGN,), require_quote=True)
    assert answer.notes["record"] == {"design": "RCT"}
    assert answer.notes["conflicts"] == {}
    assert answer.evidence[0].chunk_id == 2


def test_large_numbers_that_differ_are_a_conflict() -> None:
    answer, _ = extracted([form(n=3000000001), form(n="3000000002"), {}])
    assert answer.notes["conflicts"] == {"n": [3000000001, 3000000002]}


def test_small_numbers_are_written_exactly() -> None:
    answer, _ = extracted([{"p": 0.00003}, {}, {}], (Field("p", "number"),))
    assert json.loads(answer.answer) == {"p": 0.00003}


@pytest.mark.parametrize("said", ["120 (60 per arm)", "3 million", "1,5", "about 12-14", "unclear"])
def test_a_number_that_cannot_be_read_is_empty_and_counted(said: str) -> None:
    answer, _ = extracted([form(n=said), {}, {}])
    assert (answer.notes["record"], answer.notes["unreadable"]) == ({"n": None}, ["n"])
    assert answer.notes["unknown"] == ["n"]
    assert answer.notes["not_reported"] == []
    assert answer.partial
    assert answer.reasons() == ["values that could not be read: n"]


def test_a_readable_value_elsewhere_makes_up_for_an_unreadable_one() -> None:
    answer, _ = extracted([form(n="some"), form(n=250, n_q=MORE), {}])
    assert (answer.notes["record"], answer.notes["unreadable"]) == ({"n": 250}, [])
    assert not answer.partial


def test_a_placeholder_is_a_value_only_where_the_document_says_it() -> None:
    chunks = chunks_of("Adverse events: none.", "Forty fell ill.")
    field = (Field("events"),)
    said, _ = extracted([form(events="None", events_q="Adverse events: none."), {}], field, chunks)
    assert said.notes["record"] == {"events": "None"}
    unsaid, _ = extracted([form(events="None", events_q="Forty fell ill."), {}], field, chunks)
    assert unsaid.notes["record"] == {"events": None}
    beaten = [
        form(events="None", events_q="Adverse events: none."),
        form(events="40", events_q="Forty fell ill."),
    ]
    answer, _ = extracted(beaten, field, chunks)
    assert answer.notes["record"] == {"events": "40"}
    assert answer.notes["conflicts"] == {}


def test_a_value_that_a_later_chunk_supports_keeps_the_spelling_of_the_first() -> None:
    replies = [form(design="Cohort study"), form(design="cohort study.", design_q=MORE), {}]
    answer, _ = extracted(replies, (DESIGN,))
    assert answer.notes["record"] == {"design": "Cohort study"}
    assert not answer.partial


def test_a_cut_off_reply_is_used_and_counted() -> None:
    # readers 44
    whole = json.dumps(form(n=100, n_q=HUNDRED))
    answer, _ = extracted([cut_off(whole), {}, {}])
    assert (answer.notes["record"], answer.notes["truncated_calls"]) == ({"n": 100}, 1)
    assert answer.partial


class Trial(BaseModel):
    """A form as a class."""

    n: int | None = ModelField(description="patients enrolled")
    blinded: bool = False
    design: Literal["RCT", "cohort"] | None = None


def test_a_pydantic_model_is_a_form() -> None:
    reply = form(n=100, n_q=HUNDRED, blinded="no", design="cohort")
    answer, client = extracted([reply, {}, {}], Trial)
    assert answer.notes["record"] == {"n": 100, "blinded": False, "design": "cohort"}
    forms = client.calls()[0].params["schema"]["properties"]
    assert forms["design"]["enum"] == ["RCT", "cohort", None]
    assert forms["n"]["description"] == "patients enrolled"


def test_the_settings_of_the_form_are_recorded_as_data(tmp_path: Any) -> None:
    for number, fields in enumerate(([N, "design"], Trial)):
        path = tmp_path / f"{number}.jsonl"
        client = client_of({"extract.chunk": "{}"})
        spec = {"reader": "extract", "fields": fields}
        read(CHUNKS, QUESTION, client, spec, trace=Trace(path=path))
        assert Trace.load(path).calls == 3


def test_a_quotation_is_checked_against_the_document_and_not_a_written_header() -> None:
    chunks = chunks_of("Header by a model.\nWe enrolled 100.", source_text=["We enrolled 100."])
    answer, _ = extracted(form(n=100, n_q="Header by a model."), chunks=chunks)
    assert answer.evidence[0].verified is False


def test_the_premise_is_not_checked_and_citations_are_not_asked_for() -> None:
    answer, client = extracted("{}", premise=True, cite=True)
    assert not answer.premise_checked
    assert "FALSE_PREMISE" not in system(client.calls()[0])
    assert "[chunk 3]" not in system(client.calls()[0])


def test_all_chunks_are_asked_side_by_side_and_reconciled_where_slow_work_is_done() -> None:
    spec = ReadSpec("extract", fields=[N], delay_between_calls=2)
    job = make_job(CHUNKS, QUESTION, spec, MockClient(), Trace())
    flow = find_reader("extract").reader.read(job)
    batch = next(flow)
    assert isinstance(batch, tuple)
    assert [request.label for request in batch] == ["extract.chunk"] * 3
    reconciling = flow.send([Reply(ok=True, text="{}")] * 3)
    assert isinstance(reconciling, Work)
    with pytest.raises(StopIteration) as stop:
        flow.send(reconciling.function())
    assert stop.value.value.answer == '{"n":null}'
