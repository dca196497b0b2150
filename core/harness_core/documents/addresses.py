"""Web addresses: what one is, how it is shown, and which hosts may not be asked."""

import hashlib
import ipaddress
import re
import socket
from typing import Final
from urllib.parse import urlsplit

from harness_core.errors import UrlError

_ADDRESS = re.compile(r"https?://[^\s/]\S*(?: \[query hidden [0-9a-f]{6}\])?\Z", re.IGNORECASE)
_HIDDEN = re.compile(r" \[query hidden [0-9a-f]{6}\]\Z")
_NUMERIC = re.compile(r"(?:0x[0-9a-f]+|\d+)(?:\.(?:0x[0-9a-f]+|\d+)){0,3}\.?\Z", re.IGNORECASE)
_LOCAL_NAMES: Final = frozenset(
    {"localhost", "metadata", "instance-data", "ip6-localhost", "ip6-loopback", "broadcasthost"}
)
_LOCAL_ZONES: Final = (".localhost", ".local", ".localdomain", ".internal", ".intranet", ".lan",
                       ".home.arpa", ".onion")  # fmt: skip
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


def as_address(text: str) -> str | None:
    """The web address that ``text`` is, outer blanks dropped; None if it is none."""
    trimmed = text.strip()
    return trimmed if _ADDRESS.match(trimmed) else None


def shown(address: str) -> str:
    """``address`` without user, password, query and fragment; twice is the same as once.

    A short fingerprint takes the place of query and fragment and tells two of them apart.
    """
    if _HIDDEN.search(address):
        return address
    bare, mark, hidden = address, "", ""
    if match := re.search(r"[?#]", address):
        bare, mark, hidden = address[: match.start()], match.group(), address[match.end() :]
    scheme, _, rest = bare.partition("://")
    host, slash, path = rest.partition("/")
    bare = f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
    if not mark:
        return bare
    print_ = hashlib.sha256(hidden.encode("utf-8", "replace")).hexdigest()[:6]
    return f"{bare} [query hidden {print_}]"


def host_of(address: str) -> tuple[str, int]:
    """Host, lower case, and port.

    Raises:
        UrlError: an address that names neither.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UrlError(f"{shown(address)} is no web address: {error}") from None
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise UrlError(f"{shown(address)} is no web address")
    return host.rstrip("."), port or (443 if parts.scheme.lower() == "https" else 80)


def is_local_name(host: str) -> bool:
    """Whether a host name is a machine's own, a private network's, or a metadata service's."""
    return host in _LOCAL_NAMES or host.endswith(_LOCAL_ZONES) or not host


def as_ip(host: str) -> Ip | None:
    """The address a host is written as, in whatever spelling of the four numbers."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    if not _NUMERIC.match(host):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host.rstrip(".")))
    except OSError:
        return ipaddress.IPv4Address(0)  # a number that is no address: nothing to ask


def is_public(ip: Ip) -> bool:
    """Whether an address belongs to the public internet, those inside an IPv6 address included."""
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo or (None, None))[1]
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    return ip.is_global and not ip.is_multicast and not ip.is_reserved
