"""The image of a question: checked, described once, kept nowhere."""

import base64
from typing import Any

import pytest

from harness_core import BaseClient, Reply, Request
from harness_core.collections import Collection, Collections
from harness_core.collections.faults import InvalidRequestError
from harness_core.collections.images import IMAGE_BYTES, Picture
from tests.collections.conftest import Model
from tests.support.images import image, png

JPEG = b"\xff\xd8\xff\xe0\x00\x04\x00\x00\xff\xc0\x00\x0b\x08\x00\x02\x00\x03\x01\x00\x00\x00"
WEBP = b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + b"\x02\0\0\x01\0\0"


class Eyes(BaseClient):
    """Says what it is shown."""

    model = "mock-model"
    unpriced_ok = True

    def __init__(self) -> None:
        self.seen: list[Request] = []

    def send(self, request: Request, /, *, on_text: Any = None) -> Reply:
        self.seen.append(request)
        assert isinstance(request.payload, Picture)
        return Reply(ok=True, text="A gamma pump [[SRC:0001]]", finish_reason="stop")


@pytest.fixture
def eyes() -> Eyes:
    return Eyes()


@pytest.fixture
def seeing(engine: Collections, model: Model, eyes: Eyes) -> Collection:
    made = Collections(engine.store, client=model.client, vision=eyes)
    return made.namespace("acme").collection("docs")


def test_a_picture_is_described_and_searched_for(
    seeing: Collection, eyes: Eyes, model: Model
) -> None:  # AC57
    body = {"query": "What is this?", "query_image": image(png())}
    result = seeing.answer(body)
    assert result.image_description == "A gamma pump"
    assert result.usage.credits == 2
    assert "A gamma pump" in model.prompts[-1]
    sent = base64.b64encode(png()).decode()
    kept = str(result.trace.export())
    assert sent not in kept
    assert repr(png())[2:-1] not in kept
    assert "sha256" in kept
    assert eyes.seen[0].label == "answer.image"


def test_an_image_of_exactly_four_mebibytes_is_accepted(seeing: Collection) -> None:  # AC60
    data = png(size=IMAGE_BYTES)
    assert len(data) == IMAGE_BYTES
    assert seeing.answer({"query": "x", "query_image": image(data)}).image_description


@pytest.mark.parametrize(
    "given",
    [
        image("data:image/png;base64," + base64.b64encode(png()).decode()),
        image(base64.b64encode(png()).decode().rstrip("=") + "A"),
        image(base64.b64encode(png()).decode()[:8] + "\n" + base64.b64encode(png()).decode()[8:]),
        image("é"), image(JPEG), image(""), image(png(40_000, 40_000)), image(png(0, 1)),
        image(png(size=IMAGE_BYTES + 1)), image(png(), "image/gif"),
        image(png(), "image/jpeg"), image(b"\xff\xd8\xff", "image/jpeg"),
        image(b"RIFF", "image/webp"),
    ],
)  # fmt: skip
def test_what_is_no_image_is_refused(
    seeing: Collection, eyes: Eyes, given: dict[str, Any]
) -> None:  # AC59
    with pytest.raises(InvalidRequestError) as caught:
        seeing.answer({"query": "x", "query_image": given})
    assert caught.value.details["pointer"].startswith("/query_image")
    assert eyes.seen == []


@pytest.mark.parametrize("given", [image(JPEG, "image/jpeg"), image(WEBP, "image/webp")])
def test_the_other_kinds_are_measured_too(seeing: Collection, given: dict[str, Any]) -> None:
    assert seeing.answer({"query": "x", "query_image": given}).image_description


def test_without_eyes_an_image_is_no_valid_request(docs: Collection) -> None:
    with pytest.raises(InvalidRequestError):
        docs.answer({"query": "x", "query_image": image(png())})
