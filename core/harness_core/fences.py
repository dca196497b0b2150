"""Fences: tags around document text that the text cannot close."""

import hashlib


def fence(tag: str, text: str, *, more: str = "") -> str:
    """``text`` between tags whose name carries a hash of it, lengthened until it is not in it.

    ``more`` stands in the opening tag, after its name.
    """
    found = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    folded = text.lower()  # to a model a tag in capitals is the same tag
    length = 4
    while found[:length] in folded and length < len(found):
        length += 4
    name = f"{tag}-{found[:length]}"
    return f"<{name}{more}>\n{text}\n</{name}>"
