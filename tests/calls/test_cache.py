"""A repeat is free and identical, and nothing is kept that should be asked again."""

import multiprocessing
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_core.calls.api import call, call_json
from harness_core.calls.cache import ResponseCache
from harness_core.calls.exchange import governed
from harness_core.calls.governor import Governor
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient
from harness_core.clients.callable import CallableClient
from harness_core.clients.mock import MockClient
from harness_core.config import override
from harness_core.errors import BadSettingError, CacheError, CacheWarning
from harness_core.flows import sync
from harness_core.flows.ask import ask_all
from harness_core.messages import Message, Reply, Request, Usage

HELLO = "What was revenue?"
SCHEMA = {"type": "object", "properties": {"v": {"type": "number"}}, "required": ["v"]}


def counting(cache: ResponseCache, fn: Callable[..., Any] = lambda _m: "x") -> MockClient:
    return MockClient(fn).with_cache(cache)


def test_a_repeat_is_answered_from_the_cache(cache: ResponseCache) -> None:  # core 54
    client, trace = counting(cache), Trace()
    first, second = (call(client, HELLO, trace=trace) for _ in range(2))
    assert len(client.calls()) == 1
    assert (first.cached, second.cached, second.text, second.attempts) == (False, True, "x", 0)
    assert (trace.calls, trace.cached) == (2, 1)
    assert trace.steps[0].tokens == trace.steps[1].tokens


def test_whatever_can_change_a_reply_makes_another_entry(cache: ResponseCache) -> None:  # core 55
    client = counting(cache)
    system = [{"role": "system", "content": "Brief."}, {"role": "user", "content": "a"}]
    asked: list[tuple[Any, dict[str, Any]]] = [
        ("a", {}),
        ("b", {}),
        ("a", {"model": "priced"}),
        ("a", {"temperature": 0}),
        ("a", {"temperature": 1}),
        ("a", {"max_output": 10}),
        ("a", {"schema": SCHEMA}),
        ("a", {"schema": SCHEMA, "schema_name": "other"}),
        (system, {}),
        ({"role": "assistant", "content": "a"}, {}),
        ("a", {}),
    ]
    client = counting(cache, lambda _m: '{"v": 1}')
    for messages, more in asked:
        call(client, messages, **more)
    assert cache.stats().entries == len(client.calls()) == 10


def test_two_base_urls_and_two_functions_do_not_trade_replies(cache: ResponseCache) -> None:
    """core 56"""
    for url in ("https://a.example", "https://b.example"):
        client = counting(cache)
        client.base_url = url
        call(client, HELLO)
    for _ in range(2):
        call(CallableClient(lambda _m: "x", model="priced").with_cache(cache), HELLO, max_output=9)
    assert cache.stats().entries == 4


@pytest.mark.parametrize(
    "reply",
    [
        Reply.failed("no", status=500),
        Reply(ok=True, text=" "),
        Reply(ok=True, text="cut", finish_reason="length"),
        Reply(ok=True, text="filtered", finish_reason="content_filter"),
    ],
)  # core 57, 58
def test_a_reply_worth_asking_for_again_is_not_kept(cache: ResponseCache, reply: Reply) -> None:
    client = counting(cache, lambda _m: reply)
    call(client, HELLO)
    assert (cache.stats().entries, cache.stats().writes) == (0, 0)


def test_a_structured_reply_that_does_not_fit_is_asked_for_again(cache: ResponseCache) -> None:
    """core 51: by its whole schema, so a wrong type is not kept either"""
    texts = iter(['{"v": ', '{"v": "many"}', '{"w": 1}', '{"v": 1}'])
    client = counting(cache, lambda _m: next(texts))
    found = [call_json(client, HELLO, SCHEMA) for _ in range(5)]
    assert [f.value for f in found] == [None, {"v": "many"}, {"w": 1}, {"v": 1}, {"v": 1}]
    assert [f.reply.cached for f in found] == [False, False, False, False, True]
    assert cache.stats().writes == 1


def test_a_stored_reply_that_does_not_fit_is_overwritten(cache: ResponseCache) -> None:  # core 52
    client = counting(cache, lambda _m: '{"v": 1}')
    call(client, HELLO, schema=SCHEMA)
    change(cache.path, b'"text":"{\\"v\\": 1}"', b'"text":"broken  "')
    assert not call(client, HELLO, schema=SCHEMA).cached
    assert call(client, HELLO, schema=SCHEMA).cached


def test_a_schema_that_cannot_be_applied_keeps_nothing_and_loses_nothing(
    cache: ResponseCache,
) -> None:
    trace = Trace()
    broken = {"type": "object", "properties": {"v": {"$ref": "#/nowhere"}}}
    reply = call(counting(cache, lambda _m: '{"v": 1}'), HELLO, schema=broken, trace=trace)
    assert reply.ok
    assert len(trace.steps) == 1
    assert cache.stats().entries == 0


def change(path: Path, old: bytes, new: bytes) -> None:
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT key, reply FROM replies").fetchall()
        for key, reply in rows:
            assert old in reply
            database.execute(
                "UPDATE replies SET reply = ? WHERE key = ?", (reply.replace(old, new), key)
            )
    database.close()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'{"format":1', b'{"format":2'),
        (b'{"format"', b'["format"'),
        (b'"text":"x"', b'"text":""'),  # core 61: an entry that claims a failure
        (b'"text":"x"', b'"text":7'),
        (b'"usage":[', b'"usage":["many",'),
    ],
)  # core 59
def test_an_entry_of_another_shape_is_a_miss(cache: ResponseCache, old: bytes, new: bytes) -> None:
    client = counting(cache)
    call(client, HELLO)
    change(cache.path, old, new)
    assert not call(client, HELLO).cached
    assert len(client.calls()) == 2


def test_a_file_that_cannot_be_used_is_a_warning_and_a_run_without_it(tmp_path: Path) -> None:
    """core 62"""
    (tmp_path / "file").write_text("x")
    cache = ResponseCache(tmp_path / "file" / "replies.sqlite3")
    client, trace = counting(cache), Trace()
    with pytest.warns(CacheWarning, match="cannot be used"):
        call(client, HELLO, trace=trace)
    assert not call(client, HELLO, trace=trace).cached
    assert trace.calls == 2


def test_a_damaged_file_is_a_warning_and_a_run_without_it(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite3"
    with ResponseCache(path) as cache:
        for n in range(200):
            call(counting(cache), f"{HELLO} {n}" * 20)
    data = bytearray(path.read_bytes())
    data[4096 * 2 : 4096 * 3] = b"\xff" * 4096
    data[100:4096] = b"\xff" * 3996
    path.write_bytes(data)
    with ResponseCache(path) as cache, pytest.warns(CacheWarning):
        assert call(counting(cache), HELLO).ok


def test_what_is_no_cache_of_ours_is_left_alone(tmp_path: Path) -> None:  # core 67, L11
    foreign = tmp_path / "foreign.sqlite3"
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE notes (x)")
    database.close()
    notes = tmp_path / "notes.txt"
    notes.write_text("keep me")
    for path in (foreign, notes, tmp_path):
        with pytest.raises(CacheError):
            ResponseCache(path)
    assert notes.read_text() == "keep me"


@pytest.mark.parametrize("path", ["", "  "])
def test_an_empty_path_is_an_error(path: str) -> None:  # core 69
    with pytest.raises(BadSettingError):
        ResponseCache(path)


def test_a_cache_without_a_path_is_temporary_or_the_settings(tmp_path: Path) -> None:  # core 69
    assert ResponseCache().path == ResponseCache().path
    with override(cache_path=tmp_path / "mine.sqlite3"):
        assert ResponseCache().path == tmp_path / "mine.sqlite3"
    with override(cache_path=""):
        assert ResponseCache().path == ResponseCache().path != Path()


def test_reading_and_writing_are_switched_off_apart(cache: ResponseCache) -> None:  # core 64
    frozen = ResponseCache(cache.path, write=False)
    call(counting(frozen), HELLO)
    assert frozen.stats().entries == 0
    call(counting(cache), HELLO)
    assert call(counting(frozen), HELLO).cached
    refreshing = ResponseCache(cache.path, read=False)
    client = counting(refreshing, lambda _m: "newer")
    assert not call(client, HELLO).cached
    assert refreshing.stats().misses == 0
    assert call(counting(cache), HELLO).text == "newer"
    for one in (frozen, refreshing):
        one.close()


def test_a_prompt_is_never_in_the_file_and_a_raw_reply_only_where_a_codec_packs_it(
    cache: ResponseCache,
) -> None:  # core 63, 65, 66
    secret = "the password is swordfish"
    client = counting(cache, lambda _m: Reply(ok=True, text="It rose.", raw=object()))
    assert call(client, secret).raw is not None
    assert call(client, secret).raw is None
    cache.close()
    data = b"".join(path.read_bytes() for path in cache.path.parent.iterdir())
    assert b"swordfish" not in data
    assert b"It rose." in data
    assert [path.name for path in cache.path.parent.iterdir()] == [cache.path.name]


def test_counters_and_clearing(cache: ResponseCache) -> None:  # core 68
    client = counting(cache)
    for text in ("a", "a", "b"):
        call(client, text)
    stats = cache.stats()
    assert (stats.entries, stats.writes, stats.hits, stats.misses) == (2, 2, 1, 2)
    assert stats.bytes > 0
    assert cache.clear() == 2
    stats = cache.stats()
    assert (stats.entries, stats.writes, stats.hits, stats.misses) == (0, 0, 0, 0)


def test_a_cached_run_needs_no_budget(cache: ResponseCache) -> None:  # core 71
    client = CallableClient(lambda _m: "x", model="priced", id="mine").with_cache(cache)
    asked = [f"{HELLO} {n}" for n in range(5)]
    for text in asked:
        call(client, text, max_output=50)
    trace = Trace(Governor(max_cost_usd=0))
    assert all(call(client, text, max_output=50, trace=trace).cached for text in asked)
    assert (trace.spent_usd, trace.budget_stop, trace.calls) == (0, False, 5)


def test_draws_are_entries_of_their_own(cache: ResponseCache) -> None:  # core 72
    texts = iter(["one", "two", "three", "four"])
    client = counting(cache, lambda _m: next(texts))
    first = [call(client, HELLO, draw_index=k).text for k in (1, 2, 3)]
    again = [call(client, HELLO, draw_index=k).text for k in (3, 1, 2)]
    assert (first, again) == (["one", "two", "three"], ["three", "one", "two"])
    assert call(client, HELLO).text == "four"


def test_identical_requests_on_their_way_are_sent_once_and_only_where_a_cache_is(
    cache: ResponseCache,
) -> None:
    class Concurrent(BaseClient):
        model, identity, cache = "mock-model", "c", None
        unpriced_ok = True
        sent = 0

        def send(self, request: Request, /, *, on_text: Any = None) -> Reply:
            type(self).sent += 1
            return Reply(ok=True, text="x", usage=Usage(input=1, output=1))

    MockClient()
    same = Request(messages=(Message("user", HELLO),))
    for attached, sent in ((cache, 1), (None, 4)):
        Concurrent.sent = 0
        client = Concurrent().with_cache(attached)
        sync.run(governed(ask_all([same] * 4), Run(client, Trace())), width=4)
        assert Concurrent.sent == sent


class Packing:
    """Packs what it is given, or fails to."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault = fault

    def pack(self, reply: Reply) -> Any:
        if self.fault is not None:
            raise self.fault
        return {"packed": reply.raw}

    def unpack(self, stored: Any) -> Any:
        return stored["packed"]


def coded(codec: Packing, cache: ResponseCache) -> MockClient:
    client = MockClient(lambda _m: Reply(ok=True, text="x", raw="theirs")).with_cache(cache)
    client.codec = codec
    return client


def test_a_codec_carries_a_raw_reply_through_the_cache(cache: ResponseCache) -> None:
    client = coded(Packing(), cache)
    assert [call(client, HELLO).raw for _ in range(2)] == ["theirs", "theirs"]


def test_what_was_paid_for_is_kept_when_a_codec_fails(cache: ResponseCache) -> None:
    trace, client = Trace(), coded(Packing(LookupError("a bug in an adapter")), cache)
    with pytest.raises(LookupError):
        call(client, HELLO, trace=trace)
    assert [s.response for s in trace.steps] == ["x"]
    assert not cache._flights


def filled(path: Path, start: Any, first: int) -> None:
    start.wait()
    with ResponseCache(path) as cache:
        for n in range(first, first + 20):
            call(MockClient(lambda _m: "x").with_cache(cache), f"{HELLO} {n}")


def test_several_processes_share_a_file(tmp_path: Path) -> None:
    spawn, path = multiprocessing.get_context("spawn"), tmp_path / "replies.sqlite3"
    start = spawn.Event()
    children = [spawn.Process(target=filled, args=(path, start, 10 * n)) for n in range(3)]
    for child in children:
        child.start()
    start.set()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0, 0]
    with ResponseCache(path) as cache:
        assert cache.stats().entries == 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_cache_opens_its_file_again_after_a_fork(cache: ResponseCache) -> None:
    call(counting(cache), HELLO)
    child = os.fork()
    if child == 0:
        os._exit(0 if call(counting(cache), HELLO).cached else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert call(counting(cache), HELLO).cached
