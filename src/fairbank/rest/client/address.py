"""Addresses of banks."""

from __future__ import annotations

from typing import NamedTuple

from fairbank.core.errors import InvalidInput

UNIX, HTTP, HTTPS = "unix", "http", "https"
PORTS = {HTTP: 80, HTTPS: 443}


class Address(NamedTuple):
    """Path of a Unix socket, or a host and a port."""

    scheme: str
    place: str
    port: int = 0

    def __str__(self) -> str:
        if self.scheme == UNIX:
            return f"unix:{self.place}"
        return f"{self.scheme}://{self.host}"

    @property
    def host(self) -> str:
        """Value of the `Host` header. A Unix socket has none, so any name will do."""
        if self.scheme == UNIX:
            return "localhost"
        place = f"[{self.place}]" if ":" in self.place else self.place
        return place if self.port == PORTS[self.scheme] else f"{place}:{self.port}"


def parse_address(text: str, *, field: str = "server") -> Address:
    """Parse an address.

    Args:
        text: `unix:/run/fairbank/fairbank.sock`, an absolute path, `http://host:port` or
            `https://host`.
        field: the option or setting that contains it.

    Raises:
        InvalidInput: it has another form.
    """
    if not text.isprintable() or not text.isascii() or " " in text:
        raise _invalid_address(text, field)
    if text.startswith("/"):
        return Address(UNIX, text)
    scheme, _, rest = text.partition(":")
    if scheme == UNIX and rest.startswith("/"):
        return Address(UNIX, "/" + rest.lstrip("/"))
    if scheme not in PORTS or not rest.startswith("//"):
        raise _invalid_address(text, field)
    place, port = _host_and_port(rest[2:].removesuffix("/"))
    if not place or any(character in place for character in "/?#@[]") or not _is_port(port):
        raise _invalid_address(text, field)
    return Address(scheme, place, int(port or PORTS[scheme]))


def _host_and_port(text: str) -> tuple[str, str]:
    if text.startswith("["):  # an IPv6 address
        place, _, port = text[1:].partition("]")
        return place, port.removeprefix(":")
    place, _, port = text.partition(":")
    return place, port


def _is_port(text: str) -> bool:
    return text == "" or (text.isdigit() and len(text) <= 5 and 0 < int(text) < 65_536)


def _invalid_address(text: str, field: str) -> InvalidInput:
    return InvalidInput(
        f"{text[:80]!r} is not the address of a bank",
        field=field,
        remedy="write unix:/run/fairbank/fairbank.sock or http://host:port",
    )
