"""Addresses, before any handler sees them: a number in one has one spelling, and a slash is one that the client wrote as such."""

from __future__ import annotations

from litestar.exceptions import NotFoundException

from fairbank.core.errors import InvalidInput
from fairbank.rest.asking import Asking


def check_address(request: Asking) -> None:
    """Raises InvalidInput, naming the part, for what Python takes for a number (+1, 1_0, digits of other scripts), and where there is not
    one Host, or more than one key; NotFoundException for an encoded slash, which who looks at addresses on the way would not see."""
    names = [name for name, _ in request.scope["headers"]]
    hosts = names.count(b"host")
    if hosts > 1 or (hosts == 0 and request.scope["http_version"] == "1.1"):
        raise InvalidInput(
            f"the request has {hosts or 'no'} Host headers",
            field="Host",
            remedy="send one: Host: NAME",
        )
    if names.count(b"idempotency-key") > 1:
        raise InvalidInput("the request has two keys", field="Idempotency-Key", remedy="send one")
    if b"%2f" in request.scope["raw_path"].lower():
        raise NotFoundException
    if not request.path_params:
        return
    written = (each for each in request.scope["path"].split("/") if each)
    known = (each for each in request.scope["path_template"].split("/") if each)
    for part, name in zip(written, known, strict=False):
        value = request.path_params.get(name.strip("{}")) if name.startswith("{") else None
        if isinstance(value, int) and part != str(value):
            field = name.strip("{}")
            raise InvalidInput(
                f"{field}: {part[:64]!r} is no number as addresses have it",
                field=field,
                remedy=f"write it as {value}",
            )
