"""Files fetched from an address: where that is allowed, and never from inside a private network."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness_integrations.engine.service.sources import Sources, is_public
from tests.engine.conftest import QUICK
from tests.support.engine import World, error_of, path_of, refused, world

FILES = path_of("docs", "/files")
LIMIT = 1000


@dataclass
class Site:
    """A web server on this machine, under the names that its resolver knows."""

    port: int = 0
    names: dict[str, Sequence[str]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    resolved: list[str] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        assert port in (self.port, 443)
        self.resolved.append(host)
        return self.names.get(host, ())

    def uri(self, path: str, host: str = "files.example") -> str:
        return f"http://{host}:{self.port}{path}"


class Handler(BaseHTTPRequestHandler):
    """What there is to fetch."""

    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        self.site.asked.append((self.headers["host"], self.path))
        assert "authorization" not in self.headers
        parts = self.path.strip("/").split("/", 1)
        getattr(self, f"_{parts[0]}")(*parts[1:])

    def _file(self, kind: str = "text/plain; charset=utf-8") -> None:
        self._reply(200, b"The bridge is green.", **({"content-type": kind} if kind else {}))

    def _to(self, place: str) -> None:
        self._reply(302, b"", location=place.replace("PORT", str(self.site.port)))

    def _hops(self, left: str) -> None:
        if left == "0":
            self._file()
        else:
            self._reply(301, b"", location=f"/hops/{int(left) - 1}")

    def _status(self, code: str) -> None:
        self._reply(int(code), b"no")

    def _large(self) -> None:
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for _ in range(3):
            self.wfile.write(b"%x\r\n%s\r\n" % (LIMIT // 2, b"x" * (LIMIT // 2)))
        self.wfile.write(b"0\r\n\r\n")

    def _packed(self) -> None:
        self._reply(200, b"\x1f\x8b", **{"content-encoding": "gzip"})

    def _slow(self) -> None:
        self.site.release.wait(10)
        self.close_connection = True

    def _broken(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "100")
        self.end_headers()
        self.wfile.write(b"x")
        self.close_connection = True

    def _reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing is written."""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    made = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"site": made}))
    made.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    made.release.set()
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def open_to_site(tmp_path_factory: pytest.TempPathFactory, site: Site) -> Iterator[World]:
    named = [f"{name}.example:{site.port}" for name in ("files", "inside", "mixed", "dead")]
    sources = Sources(
        hosts=(*named, f"127.0.0.1:{site.port}", "outside.example"), schemes=("http", "https"),
        networks=("127.0.0.0/8",), most_bytes=LIMIT, resolve=site.resolve,
    )  # fmt: skip
    settings = replace(QUICK, sources=sources)
    with world(tmp_path_factory.mktemp("fetch"), settings=settings, names=("docs",)) as made:
        yield made


@pytest.fixture
def w(open_to_site: World, site: Site) -> World:
    site.names = {
        "files.example": ["127.0.0.1"], "inside.example": ["10.0.0.7"],
        "mixed.example": ["127.0.0.1", "192.168.1.1"], "dead.example": ["127.0.0.2"],
    }  # fmt: skip
    site.asked.clear()
    site.resolved.clear()
    return open_to_site


def _fetch(w: World, uri: str, **more: Any) -> httpx.Response:
    return w.request("POST", FILES, json={"path": "/fetched.txt", "uri": uri, **more})


def test_a_file_is_fetched_and_answered_from(w: World, site: Site) -> None:
    added = _fetch(w, site.uri("/file"), metadata={"from": "site"})
    assert (added.status_code, added.json()["content_type"]) == (202, "text/plain")
    assert (added.json()["bytes"], added.json()["metadata"]) == (20, {"from": "site"})
    w.engine.process()
    assert w.collection("docs").text(added.json()["id"]) == "The bridge is green."
    assert site.asked == [(f"files.example:{site.port}", "/file")]


def test_the_type_is_the_askers_then_the_sources_then_the_paths(w: World, site: Site) -> None:
    unsaid = _fetch(w, site.uri("/file/application/octet-stream"), path="/x.md")
    assert unsaid.json()["content_type"] == "text/markdown"
    assert _fetch(w, site.uri("/file/text/html")).json()["content_type"] == "text/html"
    asked = _fetch(w, site.uri("/file"), content_type="text/csv")
    assert asked.json()["content_type"] == "text/csv"
    pdf = _fetch(w, site.uri("/file/application/pdf")).json()["id"]
    w.engine.process()
    found = w.request("GET", f"{FILES}/{pdf}").json()  # its bytes say otherwise
    assert (found["status"], found["error"]["code"]) == ("failed", "corrupt")


def test_without_hosts_nothing_is_fetched(served: World, site: Site) -> None:  # SEC04
    for uri in ("https://files.example/a", "file:///etc/passwd", "http://127.0.0.1/"):
        refused(_fetch(served, uri), "/uri")
    assert served.request("GET", "/info").json()["features"]["uri"] is False


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "ftp://files.example:PORT/file",
        "gopher://files.example:PORT/file",
        "http://other.example/file",
        "http://files.example/file",
        "http://169.254.169.254/latest/meta-data",
        "http://127.0.0.1/",
        "http://[::1]:PORT/file",
        "http://2130706433:PORT/file",
        "http://user:secret@files.example:PORT/file",
        "http://files.example:PORT@other.example/file",
        "http://inside.example:PORT/file",
        "http://mixed.example:PORT/file",
        "http://outside.example:PORT/file",
        "https://outside.example/nobody-knows-it",
        "//files.example/file",
        "files.example",
        "http://",
        "http://files.example:PORT\r\nx: y/",
        "",
    ],
)  # fmt: skip
def test_what_may_not_be_fetched_is_refused_before_connecting(
    w: World, site: Site, uri: str
) -> None:  # SEC04
    refused(_fetch(w, uri.replace("PORT", str(site.port))), "/uri")
    assert site.asked == []


@pytest.mark.parametrize(
    "place",
    [
        "http://inside.example:PORT/file",
        "http://mixed.example:PORT/file",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "//other.example/file",
        "http://x@files.example:PORT/file",
    ],
)
def test_each_redirect_is_checked_anew(w: World, site: Site, place: str) -> None:  # SEC04
    refused(_fetch(w, site.uri(f"/to/{place}")), "/uri")
    assert len(site.asked) == 1


def test_three_redirects_are_followed_and_no_more(w: World, site: Site) -> None:
    assert _fetch(w, site.uri("/hops/3")).status_code == 202
    refused(_fetch(w, site.uri("/hops/4")), "/uri")
    assert [path for _, path in site.asked].count("/hops/0") == 1


def test_the_connection_goes_to_the_address_that_was_checked(w: World, site: Site) -> None:
    given = iter((["127.0.0.1"], ["10.0.0.7"]))
    site.names = {"files.example": _Changing(given)}
    assert _fetch(w, site.uri("/file")).status_code == 202
    assert site.resolved == ["files.example"]
    refused(_fetch(w, site.uri("/file")), "/uri")


class _Changing(list[str]):
    """Another address each time it is looked at."""

    def __init__(self, given: Iterator[list[str]]) -> None:
        super().__init__()
        self.given = given

    def __bool__(self) -> bool:
        self[:] = next(self.given)
        return True


def test_a_source_gives_a_file_or_is_refused(w: World, site: Site) -> None:
    before = w.collection("docs").files()
    for path in ("/status/404", "/status/204", "/large", "/packed"):
        refused(_fetch(w, site.uri(path)), "/uri")
    for path in ("/status/500", "/status/503", "/status/429", "/broken"):
        response = _fetch(w, site.uri(path))
        assert error_of(response) == (503, "temporarily_unavailable")
        assert response.json()["error"]["retryable"] is True
    assert error_of(_fetch(w, site.uri("/file", "dead.example")))[0] == 503
    assert w.collection("docs").files() == before


def test_a_source_that_takes_too_long_is_given_up(site: Site, tmp_path: Path) -> None:
    sources = Sources(
        hosts=(f"127.0.0.1:{site.port}",), schemes=("http",), networks=("127.0.0.1/32",),
        seconds=0.05,
    )  # fmt: skip
    with world(tmp_path, settings=replace(QUICK, sources=sources), names=("docs",)) as own:
        response = _fetch(own, site.uri("/slow", "127.0.0.1"))
    assert error_of(response) == (503, "temporarily_unavailable")
    assert response.json()["error"]["details"]["reason"] == "deadline"


def test_a_fetched_file_is_fetched_once(w: World, site: Site) -> None:
    body, headers = {"path": "/once.txt", "uri": site.uri("/file")}, {"idempotency-key": "fetch"}
    first, again = (w.request("POST", FILES, json=body, headers=headers) for _ in range(2))
    assert first.status_code == again.status_code == 202
    assert first.content == again.content
    assert len(site.asked) == 1


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8"])
def test_a_public_address_is_one(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.1", "10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1",
        "192.0.0.1", "192.168.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "fc00::1",
        "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "64:ff9b::7f00:1",
        "2002:7f00:1::", "2001:0:7f00:1::", "2001:db8::1",
    ],
)  # fmt: skip
def test_an_address_of_no_public_network_is_not(address: str) -> None:  # SEC04
    assert not is_public(address)


def test_any_public_host_may_be_allowed(site: Site, tmp_path: Path) -> None:
    sources = Sources(hosts=("*",), resolve=site.resolve)
    site.names = {"inside.example": ["10.0.0.7"], "files.example": ["127.0.0.1"]}
    settings = replace(QUICK, sources=sources)
    with world(tmp_path, settings=settings, names=("docs",)) as own:
        for uri in (
            "https://inside.example/a", "https://files.example/a", "http://inside.example/a",
            site.uri("/file"), f"https://files.example:{site.port}/a",
        ):  # fmt: skip
            refused(_fetch(own, uri), "/uri")
        assert own.request("GET", "/info").json()["features"]["uri"] is True
