"""Readers by name, their settings, and what a question may be."""

import math
from typing import Any

import pytest

from harness_core import (
    Answer,
    CallableClient,
    MockClient,
    ReadSpec,
    Trace,
    list_readers,
    new_answer,
    read,
    reader_signature,
    register_model,
    register_reader,
)
from harness_core.errors import (
    AmbiguousNameWarning,
    BadQuestionError,
    BadReaderError,
    BadSettingError,
    BadSettingWarning,
    ClampedWarning,
    NearMissWarning,
    ReservedNameError,
    UnknownEffortKeyError,
    UnknownMethodError,
)
from harness_core.flows.ask import ask
from harness_core.flows.types import Flow
from harness_core.reading.job import Job
from harness_core.recipes import as_recipe
from tests.support.reading import QUESTION, labels, prompt_of, saying, the_chunks


def longest(job: Job) -> Flow[Answer]:
    """Answer from the longest chunk."""
    chunk = max(job.chunks, key=lambda one: one.tokens)
    reply = yield from ask(job.answering([chunk], "longest.answer"))
    return job.answer(reply.text, used=[chunk.chunk_id])


def test_signatures_are_distinct_and_of_three_parts() -> None:  # readers 1
    signatures = [row["signature"] for row in list_readers()]
    assert len(set(signatures)) == len(signatures)
    assert all(len(signature.split("|")) == 3 for signature in signatures)


def test_the_rows_of_readers_say_what_each_does() -> None:
    rows = {row["name"]: row for row in list_readers()}
    assert list(rows) == sorted(rows)
    assert rows["map_reduce"]["calls"] == ["map.answer", "reduce"]
    assert all(row["description"] and row["cost_calls"] and row["use"] for row in rows.values())


def test_a_registered_reader_is_listed_and_runs() -> None:  # readers 2
    register_reader("longest", longest, signature="own|1|none", stages=("longest.answer",))
    client = saying()
    answer = read(the_chunks(), QUESTION, client, "longest")
    assert "longest" in {row["name"] for row in list_readers()}
    assert (labels(client), answer.partial) == (["longest.answer"], False)
    assert answer.signature == "own|1|none"


def test_a_reader_that_returns_text_is_an_error_that_names_it() -> None:  # readers 3
    def bare(job: Job) -> Flow[Any]:
        return (yield from ask(job.answering(job.chunks, "bare.answer"))).text

    register_reader("bare", bare)
    with pytest.raises(BadReaderError, match="'bare' returned str"):
        read(the_chunks(), QUESTION, saying(), "bare")


def test_a_reader_with_a_recipe_s_name_leaves_the_name_to_the_recipe() -> None:  # readers 4
    register_reader("survey", longest, signature="own|1|none")
    with pytest.warns(AmbiguousNameWarning):
        assert as_recipe("survey").read.reader == "hierarchical"
    assert as_recipe("preview").read.reader == "preview"


@pytest.mark.parametrize(
    ("name", "reader", "error"),
    [
        ("auto", longest, ReservedNameError),
        (" ", longest, BadSettingError),
        ("mine", "no function", BadSettingError),
    ],
)
def test_what_cannot_be_registered_is_refused(
    name: str, reader: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        register_reader(name, reader)


@pytest.mark.parametrize("signature", ["all|N", "all||none", "a|b|c|d"])
def test_a_signature_has_three_parts(signature: str) -> None:
    with pytest.raises(BadSettingError, match="three parts"):
        register_reader("mine", longest, signature=signature)


def test_the_signature_of_an_ensemble_names_its_members() -> None:
    assert reader_signature("stuff") == "all|1|none"
    spec = ReadSpec("ensemble", members=("retrieve", "map_reduce"))
    assert reader_signature(spec) == "ensemble|sum+1|none{map_reduce+retrieve}"


@pytest.mark.parametrize(
    ("given", "warning", "value"),
    [
        ({"mmr": 4}, ClampedWarning, 1),  # readers 9
        ({"mmr": -1}, ClampedWarning, 0),
        ({"mmr": math.nan}, BadSettingWarning, 1),  # readers 10
        ({"mmr": None}, BadSettingWarning, 1),
        ({"mmr": [0.2, 0.4]}, BadSettingWarning, 1),
        ({"fan_in": 999}, ClampedWarning, 32),  # readers 12
        ({"top_k": "many"}, BadSettingWarning, 6),
        ({"min_score": "high"}, BadSettingWarning, -math.inf),
        ({"cite": "yes"}, BadSettingWarning, False),
        ({"max_concurrency": 0}, ClampedWarning, 1),
    ],
)
def test_an_unusable_number_is_moved_or_replaced_and_said(
    given: dict[str, Any], warning: type[Warning], value: object
) -> None:
    with pytest.warns(warning):
        spec = ReadSpec("retrieve", **given)
    assert getattr(spec, next(iter(given))) == value


@pytest.mark.parametrize("value", [0.5, 0])  # readers 9, 10
def test_a_usable_number_is_kept(value: float) -> None:
    assert ReadSpec("retrieve", mmr=value).mmr == value
    assert ReadSpec("retrieve").mmr == 1


@pytest.mark.parametrize(
    "given",
    [
        {"context_order": "sideways"},  # readers 11
        {"restate": "sometimes"},
        {"on_overflow": "shrug"},
        {"model": 3},
        {"temperature": "warm"},
    ],
)
def test_a_value_outside_its_choices_is_an_error(given: dict[str, Any]) -> None:
    with pytest.raises(BadSettingError, match=next(iter(given))):
        ReadSpec("stuff", **given)
    assert ReadSpec("stuff").context_order == "relevance"


def test_a_setting_a_letter_off_is_passed_on_with_a_warning() -> None:  # readers 13
    with pytest.warns(NearMissWarning, match="top_k"):
        spec = ReadSpec("retrieve", topk=3)
    assert spec.top_k == 6
    assert spec.given()["topk"] == 3


def test_an_unknown_reader_fails_where_the_spec_is_made() -> None:
    with pytest.raises(UnknownMethodError, match="did you mean refine"):
        ReadSpec("refin")
    with pytest.raises(BadSettingError):
        ReadSpec.of(3)


def test_an_effort_that_reaches_no_stage_is_an_error_that_lists_them() -> None:
    with pytest.raises(UnknownEffortKeyError, match=r"map\.answer"):
        ReadSpec("map_reduce", effort={"mapp": "low"})
    spec = ReadSpec("hierarchical", effort={"hier.summarise": "low", "default": "high"})
    assert spec.effort_of("hier.summarise.L2") == "low"
    assert spec.effort_of("hier.answer") == "high"


def test_a_model_that_follows_the_client_is_not_a_setting_of_the_read() -> None:  # readers 14
    spec, client = ReadSpec("stuff"), saying()
    trace = Trace()
    read(the_chunks(), QUESTION, client, spec, trace=trace)
    note = next(step for step in trace.steps if step.label == "preflight").detail
    assert spec.model is None
    assert note is not None
    assert (note["model"], note["settings"]) == ("mock-model", {"reader": "stuff"})


def test_the_client_s_model_is_asked_sized_and_billed() -> None:  # readers 15
    register_model("tiny-local", context_window=4000, max_output=512, input_usd=1.0, output_usd=2.0)
    client = CallableClient(lambda messages: "Revenue was 45.2 million.", model="tiny-local")
    trace = Trace()
    read(the_chunks(), QUESTION, client, "map_reduce", trace=trace)
    sent = [step.params_sent for step in trace.requests]
    assert {one["model"] for one in sent} == {"tiny-local"}
    assert max(one["max_output"] for one in sent) <= 512
    assert [(row["model"], row["usd"] > 0) for row in trace.cost()] == [("tiny-local", True)]


def test_a_model_that_the_spec_names_wins() -> None:  # readers 16
    register_model("named", context_window=8000, max_output=900, input_usd=1, output_usd=1)
    client = saying()
    read(the_chunks(), QUESTION, client, ReadSpec("stuff", model="named"))
    assert client.calls()[0].params["model"] == "named"


@pytest.mark.parametrize("question", [42, math.nan, None, "", " \n\t"])
def test_a_question_is_text(question: Any) -> None:  # readers 17
    client = saying()
    with pytest.raises(BadQuestionError, match="non-blank"):
        read(the_chunks(), question, client, "stuff")
    assert client.calls() == []


def test_a_question_in_another_encoding_is_read() -> None:  # readers 17, 18
    for data in ("Où est l'église ?".encode(), "Où est l'église ?".encode("cp1252")):
        client = saying()
        question: Any = data
        answer = read(the_chunks(), question, client, ReadSpec("stuff", restate="always"))
        assert answer.question == "Où est l'église ?"
        assert client.calls()[0].messages[1].content.startswith("Question: Où est l'église ?\n")


def test_chunks_are_chunks() -> None:
    texts: Any = ["one", "two"]
    with pytest.raises(BadSettingError, match="Chunks"):
        read(texts, QUESTION, saying(), "stuff")


def test_an_answer_with_a_trace_of_its_own_keeps_its_steps() -> None:
    other = Trace()
    other.note("elsewhere")

    def elsewhere(job: Job) -> Flow[Answer]:
        yield from ()
        return new_answer("Here.", "elsewhere", job.question, [], other)

    register_reader("elsewhere", elsewhere)
    answer = read(the_chunks(), QUESTION, MockClient(), "elsewhere")
    assert (answer.trace, answer.trace_steps) == (other, None)


def test_instructions_go_into_answering_prompts_below_the_rules() -> None:
    client = saying()
    spec = ReadSpec("map_reduce", instructions="Answer in French.")
    read(the_chunks(2), QUESTION, client, spec)
    for number in range(3):
        system = client.calls()[number].messages[0].content
        assert system.index("NOT_IN_DOCUMENT") < system.index("Answer in French.")
    assert "Answer in French." in prompt_of(client, 2)
