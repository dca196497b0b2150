"""A document to try things on: the annual report of a company that does not exist."""

from importlib.resources import files
from typing import Literal, get_args

from harness_core.errors import BadSettingError

__all__ = ["example_document"]

Format = Literal["pdf", "md", "docx"]


def example_document(format: Format = "pdf") -> str:  # noqa: A002 - the public name of the argument
    """The path of the packaged report, four pages as PDF; the words are the same in every format.

    Raises BadSettingError for any other format.
    """
    if format not in get_args(Format):
        raise BadSettingError(
            f"format is {format!r}; the example comes as {', '.join(get_args(Format))}."
        )
    return str(files("harness_core") / "data" / f"report.{format}")
