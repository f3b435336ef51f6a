"""The header `Authorization`: one for all schemes, so that no request carries two identities.

Authorization: Munge MUNGE:AwQFAA...:     a credential for exactly this request (`credentials`)
Authorization: Bearer fbk_Zk3v...         a token, valid until it expires or is revoked
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fairbank.core.errors import Unauthenticated
from fairbank.core.ids import BEARER_MARK
from fairbank.rest.auth.credentials import MUNGE

BEARER = "Bearer"
CHALLENGE = f"{MUNGE}, {BEARER}"  # for WWW-Authenticate in every 401

_TOKEN = re.compile(BEARER_MARK + "[A-Za-z0-9_-]{43}")


def authorization(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the `Authorization` header; raise Unauthenticated if there are two."""
    values = [value for name, value in headers if name.lower() == b"authorization"]
    if len(values) > 1:
        raise Unauthenticated("the request has two Authorization headers", remedy="send one")
    return values[0].decode("latin-1") if values else None


def scheme_of(header: str) -> str:
    """Return MUNGE or BEARER; raise Unauthenticated for another scheme."""
    word = header.partition(" ")[0].lower()
    for scheme in (MUNGE, BEARER):
        if word == scheme.lower():
            return scheme
    raise Unauthenticated(
        "the scheme of the Authorization header is not supported",
        remedy=f"Authorization: {MUNGE} ... or {BEARER} ...",
    )


def read_munge(header: str) -> bytes:
    """Return the credential in `Authorization: Munge ...`; raise Unauthenticated."""
    return _after(MUNGE, header).encode("ascii", "replace")


def read_token(header: str) -> str:
    """Return the token in `Authorization: Bearer fbk_...`; raise Unauthenticated.

    No message repeats the token.
    """
    token = _after(BEARER, header)
    if not _TOKEN.fullmatch(token):
        raise Unauthenticated(
            "this is not a token of Fairbank",
            remedy=f"send the complete token; it begins with {BEARER_MARK}",
        )
    return token


def _after(scheme: str, header: str) -> str:
    if scheme_of(header) != scheme:
        raise Unauthenticated(
            f"the request is not signed with {scheme}", remedy=f"Authorization: {scheme} ..."
        )
    return header[len(scheme) :].strip(" ")
