"""What an answer tells afterwards: its record, its reasons, its printed and stored forms."""

import json
from typing import Any

import pytest

from harness_core import (
    Answer,
    Evidence,
    ReadSpec,
    Trace,
    new_answer,
    new_chunks,
    read,
    verify_evidence,
)
from harness_core.answer import reasons
from harness_core.documents.types import Block, Document
from harness_core.errors import BadSettingError
from harness_core.reading.places import placed
from tests.support.reading import QUESTION, saying, the_chunks


def test_two_reads_on_one_trace_keep_their_own_records() -> None:  # readers 187
    trace = Trace()
    first = read(the_chunks(2), "What about quays?", saying(), "stuff", trace=trace)
    issued = trace.issued
    second = read(the_chunks(2), "What about sheds?", saying(), "stuff", trace=trace)
    assert first.trace_steps == (1, issued)
    assert second.trace_steps == (issued + 1, trace.issued)
    assert "sheds" not in first.to_json()
    assert "quays" not in second.to_json()
    assert (first.totals().calls, second.totals().calls) == (1, 1)


def test_the_json_of_an_answer_has_arrays_objects_and_numbers() -> None:  # readers 189
    answer = new_answer("Yes.", "mine", QUESTION, [3])
    plain = json.loads(answer.to_json())
    assert (plain["chunks_used"], plain["notes"], plain["evidence"]) == ([3], {}, [])
    assert "premise" not in plain
    answer = new_answer(
        "Yes.", "mine", QUESTION, [3],
        notes={"dropped_chunks": 2, "queries": "more?", "members": ("a",), "answered": 4,
               "member_notes": {"a": {"queries": "more?"}}},
    )  # fmt: skip
    notes = json.loads(answer.to_json())["notes"]
    assert notes == {
        "dropped_chunks": 2, "queries": ["more?"], "members": ["a"], "answered": 4,
        "member_notes": {"a": {"queries": ["more?"]}},
    }  # fmt: skip


def test_the_json_of_an_answer_holds_its_warnings_by_class() -> None:  # core 107
    answer = new_answer("Yes.", "mine", QUESTION, [3])
    answer.warnings += [("OverflowWarning", "too long"), ("OverflowWarning", "longer still")]
    plain = json.loads(answer.to_json())
    assert plain["warnings"] == [
        {"class": "OverflowWarning", "message": "too long"},
        {"class": "OverflowWarning", "message": "longer still"},
    ]


def test_the_json_of_an_answer_can_leave_out_prompts_and_replies() -> None:
    answer = read(the_chunks(1), QUESTION, saying(), "stuff")
    assert "prompt" in answer.to_json()
    assert "trace" not in json.loads(answer.to_json(trace=False))


def test_a_failed_merge_is_worded_by_what_was_merged() -> None:  # readers 190
    assert reasons({"merge_ok": False, "evidence_consolidated": True}) == [
        "the evidence was not consolidated"
    ]
    assert reasons({"merge_ok": False}) == ["the answers were not merged"]


def test_reasons_come_in_a_fixed_order_and_stay_short() -> None:
    found = reasons({
        "error": "x" * 300, "unread_pages": list(range(20)), "dropped_chunks": 2,
        "failed_calls": 1, "cited_unparsed": [f"[chunk {n} to]" for n in range(9)],
        "partial_members": ["retrieve", "map_reduce"], "merge_ok": False,
    })  # fmt: skip
    assert [reason.partition(":")[0] for reason in found] == [
        "1 request(s) failed",
        "2 chunk(s) did not fit",
        "citations that could not be checked",
        "pages never read",
        "the answers were not merged",
        "first error",
        "members with a partial answer",
    ]
    assert "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ..." in found[3]
    assert len(found[5]) < 140


def test_the_reader_s_reason_is_told_when_nothing_else_is() -> None:
    assert reasons({"reason": "no chunks"}) == ["no chunks"]
    assert reasons({"reason": "no chunks", "failed_calls": 1}) == ["1 request(s) failed"]
    assert reasons({"call_cap_reached": 0}) == ["stopped at the limit of 0 requests"]


def test_a_quotation_that_states_no_value_is_worded_apart() -> None:
    evidence = [
        Evidence(chunk_id=1, text="It was 120.", kind="extracted", verified=False, match=1.0),
        Evidence(chunk_id=2, text="Invented.", kind="extracted", verified=False, match=0.1),
    ]
    found = reasons({"unverified_evidence": 2}, evidence=evidence)
    assert found == [
        "1 quotation(s) were not found in what they claim to quote",
        "1 quotation(s) were found and do not state the value",
    ]


def test_the_first_error_that_nothing_recovered_is_named() -> None:  # readers 191
    from harness_core.calls.steps import Step, now

    trace = Trace()
    for number, error, recovered in (("1", "vectors: 500", True), ("2", "503", False)):
        trace.slot()
        trace.keep(
            Step(step=number, label="call", kind="chat", started_utc=now(), ok=False,
                 error=error, recovered=recovered)
        )  # fmt: skip
    both = new_answer("Yes.", "mine", QUESTION, [], trace, partial=True)
    both.trace_steps = (1, 2)
    assert both.reasons() == ["first error: 503"]
    both.trace_steps = (1, 1)
    assert both.reasons() == ["first error: vectors: 500"]


def test_a_printed_answer_says_what_matters() -> None:
    evidence = [Evidence(chunk_id=n, text="Stone.", page=n, section="S" * 60) for n in range(1, 9)]
    trace = Trace()
    answer = new_answer(
        "Yes.", "mine", "Why? " * 60, [1], trace, evidence=evidence, partial=True,
        notes={"tokens_truncated": 12}, premise="It fell.", premise_checked=True,
    )  # fmt: skip
    answer.warnings += [("OverflowWarning", "too long"), ("ClampedWarning", "too high")]
    lines = str(answer).splitlines()
    assert lines[0] == "<Answer> reader=mine  PARTIAL"
    assert len(lines[1]) <= len("  Question: ") + 160
    assert lines[2].endswith("no cost recorded")
    assert "The model reports that the document contradicts the question:" in lines
    assert f'chunk 1 (p.1 "{"S" * 39}…")' in str(answer)
    assert "and 2 more" in str(answer)
    assert "  Partial: 12 token(s) were cut to fit" in lines
    assert "  Warnings: 2; first: too long" in lines


def test_a_notebook_shows_an_answer_with_nothing_of_it_as_markup() -> None:
    answer = new_answer(
        "<b>45.2</b>", "mine", "<script>?", [1], partial=True, notes={"failed_calls": 1},
        evidence=[Evidence(chunk_id=1, text="a < b", page=2)], premise="<i>", premise_checked=True,
    )  # fmt: skip
    shown = answer._repr_html_()
    assert "<script>" not in shown
    assert "&lt;b&gt;45.2&lt;/b&gt;" in shown
    assert "a &lt; b" in shown
    assert "1 request(s) failed" in shown
    assert "contradicts the question" in shown


def test_an_unknown_price_is_said() -> None:
    from harness_core import CallableClient, Governor, register_model

    register_model("unpriced-3", context_window=9000, max_output=400)
    client = CallableClient(lambda messages: "Yes.", model="unpriced-3")
    trace = Trace(Governor(allow_unpriced=True))
    answer = read(the_chunks(1), QUESTION, client, "stuff", trace=trace)
    assert "cost unknown (no registered price for unpriced-3)" in str(answer)


def test_unread_pages_make_any_answer_partial() -> None:  # readers 192
    from dataclasses import replace

    chunks = replace(the_chunks(2), unread_pages=(3, 4))
    for reader in ("stuff", "map_reduce"):
        answer = read(chunks, QUESTION, saying(), reader)
        assert answer.partial
        assert answer.notes["unread_pages"] == [3, 4]
        assert "pages never read: 3, 4" in str(answer)


def the_document() -> Document:
    rows = [
        (1, "Intro", "The eyes of the harbour are its two lamps."),
        (2, "Quays", "The quay was rebuilt in stone in 1911."),
        (3, "Quays", "Nothing else happened. Nothing else happened there."),
        (4, "Sheds", "Nothing else happened. Yes."),
    ]
    blocks = tuple(Block(text=text, page=page, section=name) for page, name, text in rows)
    return Document(blocks=blocks, source="s", label="s")


@pytest.mark.parametrize(
    ("row", "page", "section"),
    [
        ({"text": "the quay was rebuilt in stone"}, 2, "Quays"),
        ({"text": "the quay was rebuilt in stone", "section": "Mine"}, 2, "Mine"),
        ({"text": "Yes.", "kind": "answer", "page": 9}, 9, None),
        ({"text": "eye"}, None, None),
        ({"text": "Nothing else happened"}, None, None),
        ({"text": "rebuilt in stone", "verified": False, "match": 0.5}, None, None),
        ({"text": "rebuilt in stone", "verified": False, "match": 1.0}, 2, "Quays"),
        ({"text": "not there at all", "page": 7}, 7, None),
    ],
)
def test_evidence_is_placed_on_the_one_page_that_holds_it(
    row: dict[str, Any], page: int | None, section: str | None
) -> None:  # readers 192
    (found,) = placed([Evidence(chunk_id=1, **row)], the_document())
    assert (found.page, found.section) == (page, section)


# --- citations ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "unknown", "unparsed"),
    [
        ("See [chunk 1] and [chunk 2].", None, None),
        ("See [chunks 1, 2, and 9].", [9], None),  # readers 167
        ("See [chunks 1-4].", [3, 4], None),
        ("See [chunk nine].", None, ["[chunk nine]"]),
        ("See [chunks 1-2] and [chunk 1 p.3].", None, None),
        ("See [CHUNK 7] and [chunk 7].", [7], None),  # readers 164
        ("See [chunks 1 & 2; chunk 5].", [5], None),  # readers 165
        ("See [chunk 2 p.12, lines 3-9].", None, None),  # readers 166
        ("See [chunk 1 p.7, chunk 9].", None, ["[chunk 1 p.7, chunk 9]"]),
        ("No label: chunk 9 and [chunky 5].", None, None),
    ],
)
def test_what_an_answer_cites_is_checked_against_what_was_sent(
    text: str, unknown: list[int] | None, unparsed: list[str] | None
) -> None:
    answer = read(the_chunks(2), QUESTION, saying(other=text), "stuff")
    assert answer.notes.get("cited_unknown") == unknown
    assert answer.notes.get("cited_unparsed") == unparsed
    assert answer.partial is bool(unknown or unparsed)
    if unparsed:
        assert any("could not be checked" in reason for reason in answer.reasons())


def test_a_chunk_that_had_nothing_may_be_cited_by_the_merge() -> None:  # readers 168
    def answered(text: str) -> str:
        return "NOT_IN_DOCUMENT" if "Part 2." in text else "It rose."

    client = saying(map_answer=answered, reduce="It rose [chunk 2].")
    answer = read(the_chunks(3), QUESTION, client, "map_reduce")
    assert answer.chunks_used == [1, 3]
    assert "cited_unknown" not in answer.notes
    assert not answer.partial


def test_an_answer_with_nothing_to_check_has_no_such_notes() -> None:  # readers 169
    answer = new_answer("Yes.", "mine", QUESTION, [1])
    names = {"cited_unknown", "cited_unparsed", "unverified_evidence"}
    assert not names & answer.notes.keys()


def test_quotations_not_found_are_counted() -> None:
    evidence = [
        Evidence(chunk_id=1, text="a", verified=False),
        Evidence(chunk_id=1, text="b", verified=None),
        Evidence(chunk_id=1, text="  ", verified=False),
    ]
    answer = new_answer("Yes.", "mine", QUESTION, [1], evidence=evidence)
    assert (answer.notes["unverified_evidence"], answer.partial) == (1, True)
    assert len(answer.evidence) == 2


def test_what_was_read_can_be_verified_against_its_chunks() -> None:
    spec = ReadSpec("stuff", verify=True)
    answer = read(the_chunks(2), QUESTION, saying(), spec)
    assert [row.verified for row in answer.evidence] == [True, True]
    assert not answer.partial
    (note,) = [step.detail for step in answer.trace.steps if step.label == "read.verify"]
    assert note == {"rows": 2, "checked": 2, "not_found": 0}


def test_an_answer_is_one_string() -> None:
    assert new_answer(["One.", "Two."], "mine", QUESTION, []).answer == "One.\nTwo."
    assert new_answer([], "mine", QUESTION, []).answer == ""


def test_evidence_can_be_checked_again() -> None:  # readers 161
    from harness_core import override

    chunks = the_chunks(2)
    with override(embedder="lexical"):
        answer = read(chunks, QUESTION, saying(), ReadSpec("retrieve"))
    assert [check.verified for check in verify_evidence(answer, chunks)] == [True, True]
    assert [check.verified for check in verify_evidence(answer)] == [None, None]
    other = new_chunks(["Elsewhere.", "Other words."])
    assert [check.verified for check in verify_evidence(answer, other)] == [False, False]
    no_answer: Any = "text"
    with pytest.raises(BadSettingError):
        verify_evidence(no_answer)
    assert verify_evidence(Answer(answer="", reader="mine", question="?")) == []
    copied = read(chunks, QUESTION, saying(skim_extract="It rose a little."), "skim")
    assert [check.verified for check in verify_evidence(copied)] == [True, True]  # its own sources
    mapped = read(chunks, QUESTION, saying(), "map_reduce")
    assert {(check.kind, check.verified) for check in verify_evidence(mapped)} == {("answer", None)}
    assert not mapped.partial
