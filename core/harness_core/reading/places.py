"""Where a piece of evidence stands in the document: its page and section, looked up in the text."""

from harness_core.answer import Evidence
from harness_core.documents.types import Document


def placed(row: Evidence, document: Document) -> Evidence:
    """The row with the one page that holds its text, and the one section when it had none.

    A chunk's answer, a quotation that was not found, and text that stands on several pages or on
    none are left as they are.
    """
    from harness_core.checks.quotations import is_quoted

    invented = row.verified is False and (row.match or 0) < 1
    if row.kind == "answer" or invented or not any(block.page for block in document.blocks):
        return row
    blocks = [block for block in document.blocks if is_quoted(row.text, block.text)]
    pages = {block.page for block in blocks if block.page is not None}
    sections = {block.section for block in blocks if block.section}
    changes: dict[str, object] = {}
    if len(pages) == 1:
        changes["page"] = pages.pop()
    if row.section is None and len(sections) == 1 and changes:
        changes["section"] = sections.pop()
    return row.model_copy(update=changes) if changes else row
