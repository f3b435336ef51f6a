"""The header `Authorization`: one for all ways to sign in, so that no request carries two identities.

Authorization: Munge MUNGE:AwQFAA...:     a credential for this very request (`credentials`)
Authorization: Bearer fbk_Zk3v...         a token, good until it expires or is taken back (`service.access.tokens`)
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fairbank.core.errors import Unauthenticated
from fairbank.core.ids import BEARER_MARK
from fairbank.rest.sign_in.credentials import MUNGE

BEARER = "Bearer"
CHALLENGE = f"{MUNGE}, {BEARER}"  # for WWW-Authenticate in every 401

_TOKEN = re.compile(BEARER_MARK + "[A-Za-z0-9_-]{43}")


def authorization(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The one `Authorization` among raw headers, if any. Raises Unauthenticated for two: nobody guesses which one counts."""
    found = [value for name, value in headers if name.lower() == b"authorization"]
    if len(found) > 1:
        raise Unauthenticated("the request has two Authorization headers", remedy="send one")
    return found[0].decode("latin-1") if found else None


def scheme_of(header: str) -> str:
    """MUNGE or BEARER: which of `read_munge` and `read_token` reads this header. Raises Unauthenticated."""
    word = header.partition(" ")[0].lower()
    for scheme in (MUNGE, BEARER):
        if word == scheme.lower():
            return scheme
    raise Unauthenticated(
        "this way of signing in is not known here",
        remedy=f"Authorization: {MUNGE} ... or {BEARER} ...",
    )


def read_munge(header: str) -> bytes:
    """The credential in `Authorization: Munge ...`. Raises Unauthenticated."""
    return _after(MUNGE, header).encode("ascii", "replace")


def read_token(header: str) -> str:
    """The token in `Authorization: Bearer fbk_...`. Raises Unauthenticated; never repeats the token."""
    token = _after(BEARER, header)
    if not _TOKEN.fullmatch(token):
        raise Unauthenticated(
            "this is not a token of Fairbank",
            remedy=f"a token starts with {BEARER_MARK} and is sent whole",
        )
    return token


def _after(scheme: str, header: str) -> str:
    if scheme_of(header) != scheme:
        raise Unauthenticated(
            f"the request is not signed with {scheme}", remedy=f"Authorization: {scheme} ..."
        )
    return header[len(scheme) :].strip(" ")
