# ruff: noqa: RUF001 - marks of other scripts are the subject here
"""The sentinel is heard alone or breaking off, and never inside a sentence. (readers 9.1)"""

import pytest

from harness_core.answer import is_not_found


@pytest.mark.parametrize(
    "text",
    [
        *(None, "", "   ", "\n\t\u3000"),
        *(
            "NOT_IN_DOCUMENT",
            "not_in_document",
            "Not in document",
            "NOT IN DOCUMENT",
            "Not_In document",
        ),
        *("NOT_IN_DOCUMENT.", "  NOT_IN_DOCUMENT\n", '"NOT_IN_DOCUMENT"', "'not in document'"),
        *("**NOT_IN_DOCUMENT**", "`NOT_IN_DOCUMENT`", "[NOT_IN_DOCUMENT]", "(not in document)"),
        *(
            "_NOT_IN_DOCUMENT_",
            "«NOT_IN_DOCUMENT»",
            "「NOT_IN_DOCUMENT」",
            "NOT_IN_DOCUMENT。",
            "NOT_IN_DOCUMENT।",
        ),
        *(
            "\u3000NOT_IN_DOCUMENT\u3000",
            "> NOT_IN_DOCUMENT",
            "## NOT_IN_DOCUMENT ##",
            "✗ NOT_IN_DOCUMENT ✗",
        ),
        *(
            "NOT_IN_DOCUMENT. The text is about ships.",
            "NOT_IN_DOCUMENT: nothing",
            "NOT_IN_DOCUMENT, however yes",
        ),
        *("NOT_IN_DOCUMENT; see", "NOT_IN_DOCUMENT! So", "NOT_IN_DOCUMENT? Well"),
        *("NOT_IN_DOCUMENT — the text", "NOT_IN_DOCUMENT – the text", "NOT_IN_DOCUMENT—the text"),
        *("NOT_IN_DOCUMENT - the text", "NOT_IN_DOCUMENT (the text)", "NOT_IN_DOCUMENT [1]"),
        *("NOT_IN_DOCUMENT\nThe text", "NOT_IN_DOCUMENT\r\nThe text"),
        *(
            "NOT_IN_DOCUMENT，文中没有",
            "NOT_IN_DOCUMENT。文中没有",
            "NOT_IN_DOCUMENT：无",
            "NOT_IN_DOCUMENT！无",
        ),
        *(
            '"NOT_IN_DOCUMENT": the text',
            "**NOT_IN_DOCUMENT**: the text",
        ),
        *("not_in_document. however", "NOT IN DOCUMENT. However the excerpt says otherwise."),
    ],
)
def test_the_sentinel_is_heard(text: str | None) -> None:
    assert is_not_found(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Revenue rose.",
            "0",
            "...but why",
            "The answer is NOT_IN_DOCUMENT.",
            "It says NOT_IN_DOCUMENT: no",
        ),
        *(
            "Not in document. But elsewhere",
            "not in document: see page 3",
            "Not in document A but in B",
        ),
        *(
            "NOT_IN_DOCUMENT_STORE",
            "NOT_IN_DOCUMENT_STORE: a constant",
            "NOT_IN_DOCUMENTS",
            "NOT_IN_DOCUMENT.txt",
        ),
        *(
            "NOT_IN_DOCUMENT is what I would say",
            "NOT_IN_DOCUMENT-like",
            "XNOT_IN_DOCUMENT",
            "NOT  IN DOCUMENT",
        ),
        *("NOT-IN-DOCUMENT", "NOTINDOCUMENT", "NOT_IN_DOCUMENT yes"),
    ],
)
def test_an_answer_is_not_taken_for_the_sentinel(text: str) -> None:
    assert not is_not_found(text)
