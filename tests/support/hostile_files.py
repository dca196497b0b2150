"""Files that attack whoever unpacks or parses them, made for the test at hand."""

import io
import zipfile
from collections.abc import Mapping

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PDF = "application/pdf"
_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx(text: str = "The tide was high.") -> bytes:
    """The least that is read as a Word file."""
    body = f"<w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body>"
    whole = f'<w:document xmlns:w="{_W}">{body}</w:document>'
    return zipped({"word/document.xml": whole.encode()})


def zipped(parts: Mapping[str, bytes]) -> bytes:
    """An archive of those parts."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return made.getvalue()


def bomb(megabytes: int = 200) -> bytes:
    """A Word file whose text part unfolds to that many megabytes, a thousand times its size."""
    made = io.BytesIO()
    with (
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("word/document.xml", "w", force_zip64=True) as part,
    ):
        for _ in range(megabytes):
            part.write(bytes(2**20))
    return made.getvalue()


def overlapping(times: int = 500) -> bytes:
    """A Word file with one entry of 10 MB listed ``times`` times: 5 GB are declared."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", bytes(10 * 2**20))
        archive.filelist += archive.filelist * (times - 1)
    return made.getvalue()


def with_false_size() -> bytes:
    """A Word file whose directory says that its text part has ten bytes."""
    data = bytearray(docx("The tide was high. " * 50))
    place = data.rindex(b"PK\x01\x02") + 24
    data[place : place + 4] = (10).to_bytes(4, "little")
    return bytes(data)


def with_entities(encoding: str = "utf-8") -> bytes:
    """A Word file with entities that grow a billionfold, and one that names a file of the host."""
    laughs = "".join(
        f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "lol"}">' for n in range(10)
    )  # fmt: skip
    said = (
        f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE w:document [{laughs}'
        f'<!ENTITY host SYSTEM "file:///etc/passwd">]><w:document xmlns:w="{_W}"><w:body><w:p>'
        "<w:r><w:t>&l9;&host;</w:t></w:r></w:p></w:body></w:document>"
    )
    return zipped({"word/document.xml": said.encode(encoding)})


def pdf(*objects: str) -> bytes:
    """A PDF of those objects, numbered from 1; the first is its root."""
    made = b"%PDF-1.4\n"
    places = []
    for number, one in enumerate(objects, 1):
        places.append(len(made))
        made += f"{number} 0 obj\n{one}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    return made + (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
        f"trailer << /Root 1 0 R /Size {len(objects) + 1} >>\nstartxref\n{len(made)}\n%%EOF\n"
    ).encode("latin-1")


_ROOT = "<< /Type /Catalog /Pages 2 0 R >>"
_PAGE = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>"


def pdf_of_a_million_pages() -> bytes:
    """A PDF that lists its one page a million times, by a tree of pages listed again and again."""
    tree = [
        f"<< /Type /Pages /Count {100 ** (3 - level)} /Kids [{f'{level + 3} 0 R ' * 100}] >>"
        for level in range(3)
    ]
    return pdf(_ROOT, *tree, "<< /Type /Page /Parent 4 0 R /MediaBox [0 0 612 792] >>")


def pdf_nested(depth: int = 100_000) -> bytes:
    """A PDF whose page holds arrays in arrays."""
    pages = "<< /Type /Pages /Count 1 /Kids [3 0 R] >>"
    deep = "[" * depth + "]" * depth
    return pdf(_ROOT, pages, _PAGE.removesuffix(">>") + f"/Annots {deep} >>")


def pdf_with_a_wide_image() -> bytes:
    """A PDF with an image of 30,000 by 30,000 pixels in a few bytes."""
    pages = "<< /Type /Pages /Count 1 /Kids [3 0 R] >>"
    page = _PAGE.removesuffix(">>") + (
        "/Contents 4 0 R /Resources << /XObject << /I 5 0 R >> >> >>"
    )
    said = "600 0 0 600 0 0 cm /I Do"
    image = (
        "<< /Type /XObject /Subtype /Image /Width 30000 /Height 30000 /ColorSpace /DeviceGray "
        "/BitsPerComponent 8 /Length 1 >>\nstream\n0\nendstream"
    )
    content = f"<< /Length {len(said)} >>\nstream\n{said}\nendstream"
    return pdf(_ROOT, pages, page, content, image)


def pdf_with_a_script() -> bytes:
    """A PDF that asks to run JavaScript when it is opened, with a line of text."""
    said = "BT /F 12 Tf 72 700 Td (The tide was high in the harbour.) Tj ET"
    page = _PAGE.removesuffix(">>") + (
        "/Contents 4 0 R /Resources << /Font << /F << /Type /Font /Subtype /Type1 "
        "/BaseFont /Helvetica >> >> >> >>"
    )
    return pdf(
        "<< /Type /Catalog /Pages 2 0 R /OpenAction "
        "<< /S /JavaScript /JS (app.launchURL\\('http://127.0.0.1:9/'\\)) >> >>",
        "<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
        page,
        f"<< /Length {len(said)} >>\nstream\n{said}\nendstream",
    )


def encrypted_pdf() -> bytes:
    """A PDF under a password. Needs reportlab."""
    from reportlab.lib.pdfencrypt import (  # type: ignore[import-untyped]  # it has no stubs
        StandardEncryption,
    )
    from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped]  # it has no stubs

    made = io.BytesIO()
    drawing = Canvas(made, encrypt=StandardEncryption("secret", "owner"))
    drawing.drawString(72, 700, "The tide was high.")
    drawing.showPage()
    drawing.save()
    return made.getvalue()


def nested_mail(depth: int = 10_000) -> bytes:
    """A message that holds a message that holds a message."""
    head = b"Content-Type: message/rfc822\r\n\r\n"
    return head * depth + b"Subject: The tide\r\n\r\nIt was high.\r\n"
