"""The page of a trace, without a browser."""

import re
from html.parser import HTMLParser

import pytest

from harness_core import (
    Answer,
    Evidence,
    ExtractiveClient,
    Governor,
    MockClient,
    Reply,
    Trace,
    answer_document,
    call,
    example_document,
    register_model,
)
from harness_core.report import trace_page
from tests.support.hostile_trace import hostile_run

_VOID = frozenset({"meta", "rect", "link", "br"})


class Reading(HTMLParser):
    """The tags of a page with their attributes, and whether they nest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def run() -> tuple[Trace, Answer]:
    trace = Trace()
    answer = answer_document(
        example_document("md"), "How big was the deficit of the pension scheme?", "needle",
        client=ExtractiveClient(), trace=trace, reader="skim", verify=True,
    )  # fmt: skip
    return trace, answer


def marked(evidence: Evidence, answer: str = "x", trace: Trace | None = None) -> list[str]:
    told = Answer(answer=answer, reader="skim", question="?", evidence=[evidence]).to_dict()
    page = trace_page(trace or Trace(), answer=told)
    return [part.partition("</mark>")[0] for part in page.split("<mark>")[1:]]


def test_a_page_nests_loads_nothing_and_runs_nothing() -> None:
    trace, answer = run()
    reading = Reading(trace_page(trace, answer=answer.to_dict()))
    assert reading.open == []
    assert "script" not in {tag for tag, _ in reading.tags}
    attributes = {name for _, attrs in reading.tags for name in attrs}
    assert not {name for name in attributes if name in ("src", "style") or name.startswith("on")}
    links = {attrs["href"] for tag, attrs in reading.tags if tag == "a"}
    targets = {f"#{attrs['id']}" for _, attrs in reading.tags if "id" in attrs}
    assert links <= targets
    policy = next(attrs["content"] for _, attrs in reading.tags if "http-equiv" in attrs)
    assert (policy or "").startswith("default-src 'none'; style-src 'sha256-")


def test_whatever_the_texts_hold_the_page_has_the_same_tags() -> None:
    trace, answer = hostile_run()
    reading = Reading(trace_page(trace, answer=answer))
    assert reading.open == []
    tags = {tag for tag, _ in reading.tags}
    assert not tags & {"script", "img", "iframe", "base", "object", "embed"}
    assert sum("http-equiv" in attrs for _, attrs in reading.tags) == 1
    assert not any(name.startswith("on") for _, attrs in reading.tags for name in attrs)
    assert not any("\x00" in (value or "") for _, attrs in reading.tags for value in attrs.values())


def test_control_and_direction_characters_are_shown_as_what_they_are_not() -> None:
    page = trace_page(*hostile_run()[:1])
    assert not set("\x00\x07\x1b\u202e") & set(page)


def test_refusals_failures_and_cut_replies_stand_on_top() -> None:
    trace = Trace(Governor(max_calls=2))
    replies = iter((Reply(ok=False, error="busy <now>"), Reply(ok=True, text="x",
                                                            finish_reason="length")))  # fmt: skip
    client = MockClient(lambda _m: next(replies))
    for _ in range(4):
        call(client, "Well?", trace=trace, label="map.answer")
    top = trace_page(trace).partition("</section>")[0]
    for said in ("by the limit: calls", "busy &lt;now&gt;", "stopped at its output cap",
                 "2 of them; the first:"):  # fmt: skip
        assert said in top


def test_a_run_without_trouble_says_so_and_one_without_requests_too() -> None:
    page = trace_page(Trace())
    assert "Nothing was refused, failed or cut off." in page
    assert "No request was made." in page


@pytest.mark.filterwarnings("ignore::harness_core.errors.UnknownModelWarning")
def test_an_unknown_price_is_said() -> None:
    trace = Trace()
    call(MockClient(), "Well?", trace=trace, model="no-price")
    assert "<dt>Cost</dt><dd>unknown</dd>" in trace_page(trace)


def test_the_quotation_is_marked_in_its_excerpt() -> None:
    excerpt = "Before. The deficit\nwas  £5.9 million.  After & all."
    row = Evidence(
        chunk_id=1, text="the deficit was £5.9 million.", kind="extracted", source_text=excerpt
    )
    assert marked(row) == ["The deficit\nwas  £5.9 million."]


def test_each_piece_of_an_elided_quotation_is_marked() -> None:
    row = Evidence(chunk_id=1, text="One two ... five six", kind="extracted",
                   source_text="zero one two three four five six seven")  # fmt: skip
    assert marked(row) == ["one two", "five six"]


def test_a_quotation_with_a_slip_is_marked_where_it_comes_from() -> None:
    source = "The pension scheme showed a deficit of £5.9 million, against £7.2 million before."
    row = Evidence(chunk_id=1, text="The pension scheme showed a deficet of £5.9 million",
                   kind="extracted", source_text=source)  # fmt: skip
    assert marked(row) == ["The pension scheme showed a deficit of £5.9 million"]


def test_an_excerpt_that_was_not_kept_is_looked_up_in_the_prompts() -> None:
    trace = Trace()
    call(MockClient(), "Read: the tide was high on Monday, says the log.", trace=trace)
    row = Evidence(chunk_id=1, text="the tide was high", kind="extracted")
    assert marked(row, trace=trace) == ["the tide was high"]


def test_what_the_answer_copies_is_marked_in_a_verbatim_excerpt() -> None:
    row = Evidence(chunk_id=1, text="A first sentence. The tide was high. More.", kind="verbatim")
    assert marked(row, answer="The tide was high. [chunk 1]") == ["The tide was high."]


def test_a_quotation_that_is_nowhere_marks_nothing() -> None:
    row = Evidence(chunk_id=1, text="zzz yyy", kind="extracted", source_text="nothing of the sort")
    assert marked(row) == []


def test_the_waterfall_has_a_lane_per_stage_and_is_coloured_by_cost() -> None:
    register_model("dear", context_window=9000, max_output=900, input_usd=1000, output_usd=1)
    trace = Trace()
    client = MockClient(lambda _m: "fine")
    for label, asked in (("map", "one"), ("merge", "many words " * 40), ("map", "two")):
        call(client, asked, label=label, model="dear", max_output=200, trace=trace)
    page = trace_page(trace)
    lanes = page.split('<section class="stage">')[1:]
    assert [re.findall(r"#step-(\d)", lane) for lane in lanes] == [["1", "3"], ["2"]]
    assert [re.findall(r'rect class="(\w+)"', lane) for lane in lanes] == [
        ["shade1", "shade1"], ["shade5"],
    ]  # fmt: skip
