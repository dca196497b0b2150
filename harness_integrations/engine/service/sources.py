"""Files fetched from an address: from hosts that are listed, never from inside a private network.

A name is resolved once, every address it has is checked, and the connection is made to a checked
address: what the name says a moment later changes nothing. Each redirect is checked anew.
"""

import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Final, TypeAlias

import anyio
import httpx
from anyio.to_thread import run_sync

from harness_core.collections.faults import InvalidRequestError, TemporarilyUnavailableError

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
REDIRECTS: Final = 3
CONNECT_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 5

_PORTS: Final = {"http": 80, "https": 443}
_UNTYPED: Final = ("", "application/octet-stream")


async def addresses_of(host: str, port: int) -> list[str]:
    """The addresses of a host, as this machine resolves it; none for a name that nobody knows."""
    try:
        found = await anyio.getaddrinfo(host, port)
    except OSError:
        return []
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """From where files may be fetched: from nowhere, unless ``hosts`` says so.

    ``hosts`` are names, with ``:port`` where it is not the scheme's own; ``*`` is every host.
    Private, loopback and link-local addresses and the like are refused even then, except those in
    ``networks`` (as in ``10.1.0.0/16``). A file has at most ``most_bytes`` and ``seconds``.
    """

    hosts: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ("https",)
    networks: tuple[str, ...] = ()
    most_bytes: int = 100 * 1024 * 1024
    seconds: float = 60.0
    resolve: Resolve = addresses_of


async def fetch(uri: str, kept: Path, sources: Sources) -> str | None:
    """Write what is at ``uri`` to ``kept``; its content type where the source says one.

    Raises:
        InvalidRequestError: it may not be fetched, is too large, or is no file.
        TemporarilyUnavailableError: the source does not answer, or says that it cannot now.
    """
    trusted = await run_sync(_trusted)
    async with httpx.AsyncClient(trust_env=False, verify=trusted) as http:
        target = _checked(uri, sources)
        for _ in range(REDIRECTS + 1):
            response = await _opened(http, target, sources)
            try:
                if not response.has_redirect_location:
                    return await _stored(response, kept, sources)
            except httpx.HTTPError:
                raise _unavailable() from None
            finally:
                await response.aclose()
            target = _checked(response.headers["location"], sources, target)
    raise _refused(f"the source redirects over {REDIRECTS} times")


def is_public(address: str) -> bool:
    """Whether an address is one of the public network, by whatever form it is written in."""
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return is_public(str(found.ipv4_mapped))
        if found.sixtofour is not None or found.teredo is not None or found.is_site_local:
            return False
    return found.is_global and not (found.is_multicast or found.is_reserved)


def _checked(uri: str, sources: Sources, base: httpx.URL | None = None) -> httpx.URL:
    """An address that may be asked; ``base`` is the one that redirects to it."""
    try:
        target = httpx.URL(uri) if base is None else base.join(uri)
        host = target.raw_host.decode("ascii")
    except (httpx.InvalidURL, UnicodeError):
        raise _refused("the uri is not an address") from None
    if target.scheme not in sources.schemes or target.scheme not in _PORTS or target.userinfo:
        raise _refused(f"a uri begins with one of {', '.join(sources.schemes)} and names no user")
    named = host if target.port is None else f"{host}:{target.port}"
    if named not in sources.hosts and not (target.port is None and "*" in sources.hosts):
        raise _refused("files are not fetched from this host")
    return target


async def _opened(http: httpx.AsyncClient, target: httpx.URL, sources: Sources) -> httpx.Response:
    """The response of the first address that takes the connection; its body is still to come."""
    host = target.raw_host.decode("ascii")
    for address in await _reachable(host, target.port or _PORTS[target.scheme], sources):
        request = http.build_request(
            "GET", target.copy_with(host=address),
            headers={"host": target.netloc.decode("ascii"), "accept-encoding": "identity"},
            timeout=httpx.Timeout(sources.seconds, connect=CONNECT_SECONDS),
            extensions={"sni_hostname": host},
        )  # fmt: skip
        try:
            return await http.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            continue
        except httpx.HTTPError:
            break
    raise _unavailable()


async def _reachable(host: str, port: int, sources: Sources) -> Sequence[str]:
    """The addresses of a host, when all of them may be asked."""
    addresses = await sources.resolve(host, port)
    inside = [ip_network(one) for one in sources.networks]
    if not addresses or not all(
        is_public(one) or any(ip_address(one) in network for network in inside) for one in addresses
    ):
        raise _refused("the host has no public address")
    return addresses


async def _stored(response: httpx.Response, kept: Path, sources: Sources) -> str | None:
    if response.status_code >= 500 or response.status_code == 429:
        raise _unavailable()
    if response.status_code != 200:
        raise _refused(f"the source gives no file: it answers with {response.status_code}")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise _refused("the source gives the file in an encoding that was not asked for")
    size = 0
    async with await anyio.open_file(kept, "wb") as file:
        async for piece in response.aiter_raw():
            size += len(piece)
            if size > sources.most_bytes:
                raise _refused(f"the source gives over {sources.most_bytes:,} bytes")
            await file.write(piece)
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return None if kind in _UNTYPED else kind


@lru_cache
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()


def _refused(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, "/uri")


def _unavailable() -> TemporarilyUnavailableError:
    return TemporarilyUnavailableError("source", retryable=True, retry_after=RETRY_SECONDS)
