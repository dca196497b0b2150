"""Web addresses: refused, checked, pinned, bounded, and never shown with a secret."""

import contextlib
import gzip
import io
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness_core.config import override
from harness_core.documents import ingest
from harness_core.documents.addresses import as_address, as_ip, is_local_name, is_public, shown
from harness_core.documents.web import downloaded
from harness_core.errors import TooLargeError, UnsupportedFormatError, UrlError

TEXT = b"Revenue rose to 45.2 million dollars."
PAGE = b"<!doctype html><h1>Top</h1><p>Revenue rose to 45.2 million dollars.</p>"


def word_file() -> bytes:
    body = "<w:p><w:r><w:t>Revenue rose to 45.2 million.</w:t></w:r></w:p>"
    names = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("word/document.xml", f"<w:d {names}><w:body>{body}</w:body></w:d>")
    return packed.getvalue()


def other_zip() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.txt", "text")
    return packed.getvalue()


Reply = tuple[int, dict[str, str], bytes]
REPLIES: dict[str, Reply] = {
    "/plain.txt": (200, {"Content-Type": "text/plain"}, TEXT),
    "/page": (200, {"Content-Type": "text/html; charset=windows-1251"}, b"<p>"
              + "Привет, это длинный текст.".encode("cp1251")),
    "/as-text": (200, {"Content-Type": "text/plain"}, PAGE),
    "/word": (200, {"Content-Type": "application/octet-stream"}, word_file()),
    "/zip": (200, {"Content-Type": "application/zip"}, other_zip()),
    "/video": (200, {"Content-Type": "video/mp4"}, b"...."),
    "/binary": (200, {}, b"\0\1\2" * 20),
    "/packed": (200, {"Content-Type": "text/plain", "Content-Encoding": "gzip"},
                gzip.compress(TEXT)),
    "/gone": (404, {}, b"no"),
    "/hop": (302, {"Location": "/plain.txt?token=s3cret"}, b""),
    "/loop": (302, {"Location": "/loop"}, b""),
    "/away": (301, {"Location": "http://10.0.0.7/x"}, b""),
    "/big": (200, {"Content-Type": "text/plain"}, b"x" * 5000),
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, list[str]]]:
    """A server on this machine, and the paths it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, headers, body = REPLIES[self.path.partition("?")[0]]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):  # the client may have heard enough
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}", asked
    httpd.shutdown()
    thread.join()
    httpd.server_close()


@pytest.fixture
def at(server: tuple[str, list[str]]) -> Iterator[Callable[[str], str]]:
    """Full addresses on that server, with addresses and local ones allowed."""
    server[1].clear()
    with override(allow_urls=True, allow_local_urls=True):
        yield lambda path: server[0] + path


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/plain.txt", TEXT.decode()),
        ("/page", "Привет, это длинный текст."),  # the server's charset
        ("/as-text", f"Top\n\n{TEXT.decode()}"),  # I34
        ("/word", "Revenue rose to 45.2 million."),
        ("/packed", TEXT.decode()),
        ("/hop", TEXT.decode()),
    ],
)
def test_a_page_is_read_by_its_type(at: Callable[[str], str], path: str, text: str) -> None:
    assert ingest(at(path)).text == text


@pytest.mark.parametrize("path", ["/zip", "/video", "/binary"])
def test_what_is_no_document_is_refused(at: Callable[[str], str], path: str) -> None:  # I34
    with pytest.raises(UnsupportedFormatError):
        ingest(at(path))


@pytest.mark.parametrize(("path", "said"), [("/gone", "404"), ("/loop", "10 redirects")])
def test_a_failure_says_why(at: Callable[[str], str], path: str, said: str) -> None:
    with pytest.raises(UrlError, match=said):
        ingest(at(path))


def test_a_server_that_is_not_there_is_an_error_of_ours(at: Callable[[str], str]) -> None:
    with pytest.raises(UrlError, match="Refused"):
        ingest("http://127.0.0.1:1/x?token=s3cret")


def test_a_page_past_the_limit_is_stopped(at: Callable[[str], str]) -> None:  # I35
    with pytest.raises(TooLargeError) as caught, downloaded(at("/big"), limit=1000):
        pass
    assert isinstance(caught.value, UrlError)


def test_an_address_is_downloaded_once(
    at: Callable[[str], str], server: tuple[str, list[str]]
) -> None:
    assert ingest(at("/plain.txt?a=1")) is ingest(at("/plain.txt?a=1"))
    assert server[1] == ["/plain.txt?a=1"]


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "LOCALHOST.", "a.localhost", "10.1.2.3", "172.16.0.1",
        "192.168.1.1", "169.254.169.254", "100.64.0.1", "0", "2130706433", "0x7f.1",
        "0177.0.0.1", "127.1",
        "[::1]", "[::ffff:10.0.0.1]", "[fe80::1]", "[fd00::1]", "[64:ff9b::7f00:1]", "224.0.0.1",
        "metadata", "metadata.google.internal", "printer.local", "240.0.0.1",
    ],
)  # fmt: skip
def test_local_and_private_hosts_are_refused(host: str) -> None:  # I35
    def resolve(name: str, port: int) -> list[str]:
        return ["93.184.216.34"]

    refused = pytest.raises(UrlError, match="local or private")
    with override(allow_urls=True), refused, downloaded(f"http://{host}/x", resolve=resolve):
        pass


def test_a_name_that_resolves_to_a_private_address_is_refused() -> None:  # I35
    refused = pytest.raises(UrlError, match="local or private")
    page = downloaded("http://example.org/", resolve=lambda *_: ["93.184.216.34", "10.0.0.1"])
    with override(allow_urls=True), refused, page:
        pass


def test_a_redirect_to_a_private_address_is_refused(
    server: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:  # I35
    from harness_core.documents import web

    own = server[0].removeprefix("http://127.0.0.1:")
    monkeypatch.setattr(web, "is_public", lambda ip: str(ip) == "127.0.0.1")
    refused = pytest.raises(UrlError, match=r"10\.0\.0\.7.*local or private")
    page = downloaded(f"http://example.org:{own}/away", resolve=lambda *_: ["127.0.0.1"])
    with override(allow_urls=True), refused, page:
        pass


def test_a_request_goes_to_the_checked_address_under_its_own_name(
    at: Callable[[str], str], server: tuple[str, list[str]]
) -> None:  # I35
    port = server[0].rpartition(":")[2]
    with downloaded(
        f"http://name.example:{port}/plain.txt", resolve=lambda *_: ["127.0.0.1"]
    ) as page:
        assert page.path.read_bytes() == TEXT
    assert not page.path.exists()


def test_a_name_without_an_address_is_an_error() -> None:
    refused = pytest.raises(UrlError, match="no address")
    page = downloaded("http://nowhere.example/", resolve=lambda *_: [])
    with override(allow_urls=True), refused, page:
        pass


def test_public_hosts_are_public() -> None:
    for host in ("93.184.216.34", "2606:2800:220:1::1", "8.8.8.8"):
        ip = as_ip(host)
        assert ip is not None
        assert is_public(ip)
    assert as_ip("example.org") is None
    assert not is_local_name("example.org")


# --- what is shown --------------------------------------------------------------------------------

SECRET = "https://ann:pw@files.example/a/report.pdf?X-Signature=s3cret#part"


def test_no_secret_is_shown_and_queries_stay_apart() -> None:  # I36
    once = shown(SECRET)
    assert once.startswith("https://files.example/a/report.pdf [query hidden ")
    assert shown(once) == once
    assert shown(SECRET) != shown(SECRET.replace("s3cret", "other"))
    assert shown("https://files.example/a") == "https://files.example/a"


def test_no_secret_is_in_a_document_or_an_error(at: Callable[[str], str]) -> None:  # I36
    document = ingest(at("/plain.txt?token=s3cret"))
    other = ingest(at("/plain.txt?token=other"))
    assert "s3cret" not in repr(document)
    assert document.source != other.source
    for path in ("/gone?token=s3cret", "/loop?token=s3cret", "/zip?token=s3cret"):
        with pytest.raises((UrlError, UnsupportedFormatError)) as caught:
            ingest(at(path))
        assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("text", ["http://", "http:///x", "ftp://a.b", "https://a\nb", "http:// a"])
def test_what_is_no_address_is_none(text: str) -> None:
    assert as_address(text) is None
