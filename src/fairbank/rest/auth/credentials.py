"""The header `Authorization`, and MUNGE credentials.

One header for all schemes, so that no request carries two identities:

    Authorization: Munge MUNGE:AwQFAA...     a credential for exactly this request
    Authorization: Bearer fbk_Zk3v...        a token, valid until it expires or is revoked

A MUNGE credential is bound to one request and one server, and valid once. Its payload is the
statement of the request: eight lines without a newline at the end, so that a shell script can
create one with printf, sha256sum and munge:

    fairbank request 1
    POST
    /job?page=2                               path and query as sent, percent-encoded
    e3b0c44298fc1c149afbf4c8996fb924...       SHA-256 of the body in hexadecimal
    bank.example.org                          the server's name
                                              X-Fairbank-As as sent; empty if there is none
    2c1d-deposit-7                            Idempotency-Key as sent; empty if there is none
    0f1e2d3c4b5a69788796a5b4c3d2e1f0          the nonce, new for each request
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from fairbank.core.errors import InvalidInput, Unauthenticated
from fairbank.core.ids import BEARER_MARK
from fairbank.core.time import Clock, Instant
from fairbank.rest.auth.munge import NEW_CREDENTIAL, SYNCHRONISE, Decoded, Munge

MUNGE = "Munge"

TTL_SECONDS = 300  # the default of munged
SKEW_SECONDS = 60


class BoundRequest(NamedTuple):
    """The parts of a request to which a credential is bound."""

    method: str
    target: str
    body_sha256: str
    audience: str
    acting_as: str = ""
    key: str = ""

    @classmethod
    def of(
        cls,
        method: str,
        target: str,
        body: bytes,
        audience: str,
        *,
        acting_as: str | None = None,
        key: str | None = None,
    ) -> BoundRequest:
        """Create one from a request as it is sent.

        Args:
            target: path and query.
            audience: the name of the server in its settings.
            acting_as: the header X-Fairbank-As.
            key: the header Idempotency-Key.
        """
        return cls(method, target, body_hash(body), audience, acting_as or "", key or "")


def body_hash(body: bytes) -> str:
    """Return the hash of a body as it stands in the statement."""
    return hashlib.sha256(body).hexdigest()


def target_of(raw_path: bytes, query: bytes) -> str:
    """Return path and query as the client sent them. An empty query equals a missing one."""
    return (raw_path + b"?" + query if query else raw_path).decode("latin-1")


# Name, form and maximum length of each line. None can contain a newline, so two different
# requests never have the same statement.
_VERSION = "fairbank request 1"
_LINES = (
    ("version", _VERSION, len(_VERSION)),
    ("method", "[A-Z]+", 16),
    ("path or query", r"/[\x21-\x7e]*", 8_192),
    ("body hash", "[0-9a-f]{64}", 64),
    ("server name", r"[\x21-\x7e]+", 255),
    ("user acted as", r"[\x20-\x7e]*", 255),
    ("idempotency key", r"[\x21-\x7e]*", 128),
    ("nonce", "[0-9a-f]{32}", 32),
)

_BODY_LINE = 3
_REMEDIES = {
    "server name": (
        "sign with this server's name: FAIRBANK_SERVER_NAME of the client must be [server] name "
        "of the bank's settings"
    )
}
"""Remedies other than a new credential, by the line that differs."""


def new_nonce() -> str:
    return os.urandom(16).hex()


def statement(request: BoundRequest, nonce: str) -> bytes:
    """Return the payload of a credential; raise InvalidInput if a line cannot be signed."""
    lines = (_VERSION, *request, nonce)
    for line, (name, form, length_max) in zip(lines, _LINES, strict=True):
        if len(line) > length_max or not re.fullmatch(form, line):
            raise InvalidInput(
                f"the {name} {line[:64]!r} cannot be signed",
                field=name,
                remedy=(
                    f"at most {length_max} characters, printable ASCII without blanks; "
                    "percent-encode the rest"
                ),
            )
    return "\n".join(lines).encode("ascii")


def check(
    decoded: Decoded,
    request: BoundRequest,
    now: Instant,
    *,
    ttl_seconds: int = TTL_SECONDS,
    skew_seconds: int = SKEW_SECONDS,
) -> str:
    """Check that a credential was created for this request, and recently.

    Args:
        ttl_seconds: maximum age.
        skew_seconds: tolerance for a clock of the client that is ahead.

    Returns:
        The nonce. Whether it was used before is for the nonce table to check.

    Raises:
        Unauthenticated: the message names what differs.
    """
    nonce = decoded.nonce or _bound_nonce(decoded, request)
    age = now - decoded.encoded_at
    if age > ttl_seconds:
        raise Unauthenticated(
            f"the credential has expired: it is {age} s old, valid for {ttl_seconds} s",
            remedy=NEW_CREDENTIAL,
        )
    if age < -skew_seconds:
        raise Unauthenticated(
            f"clock skew: the credential was made {-age} s in the future of this server",
            remedy=SYNCHRONISE,
        )
    return nonce


def _bound_nonce(decoded: Decoded, request: BoundRequest) -> str:
    """Return the nonce of the request's statement; raise Unauthenticated for another payload."""
    lines = decoded.payload.decode("latin-1").split("\n")
    nonce = lines[-1]
    if len(lines) != len(_LINES) or lines[0] != _VERSION or not re.fullmatch(_LINES[-1][1], nonce):
        raise Unauthenticated(
            "the credential was not made for Fairbank",
            remedy="its payload must be the statement of the request",
        )
    if decoded.payload != statement(request, nonce):
        expected = (_VERSION, *request, nonce)
        different = next(
            name
            for (name, *_), line, expected_line in zip(_LINES, lines, expected, strict=True)
            if line != expected_line
        )
        raise Unauthenticated(
            f"the credential is for another request: the {different} differs",
            remedy=_REMEDIES.get(different, NEW_CREDENTIAL),
        )
    return nonce


class NonceTable(Protocol):
    """Used nonces: durable, and shared by all servers of a bank.

    munged remembers credentials too, but each daemon separately, and only until a restart.
    """

    def spend(self, nonce: str, uid: int, expires_at: Instant) -> bool:
        """Return True for the first use among all servers, and False afterwards.

        Args:
            nonce: 32 hexadecimal digits.
            uid: the user whose credential has it.
            expires_at: it is stored at least until this time.
        """
        ...


class MungeVerifier:
    """Accepts a credential of a request once. It blocks: call it in a worker thread.

    With `plain` it also accepts credentials without a payload (`munge -n`), for any request.
    """

    def __init__(
        self,
        munge: Munge,
        nonces: NonceTable,
        clock: Clock,
        *,
        ttl_seconds: int = TTL_SECONDS,
        skew_seconds: int = SKEW_SECONDS,
        plain: bool = False,
    ) -> None:
        self._munge, self._nonces, self._clock, self._plain = munge, nonces, clock, plain
        self._ttl_seconds, self._skew_seconds = ttl_seconds, skew_seconds

    def verify(self, credential: bytes, request: BoundRequest) -> Decoded:
        """Decode a credential, check it against the request and mark it as used.

        Raises:
            Unauthenticated: it is invalid, for another request, or was used before.
            InvalidInput: the request cannot be signed.
            Unavailable: munged does not answer.
        """
        return self.accept(self._decode(credential), request)

    def decode_for_head(self, credential: bytes, head: BoundRequest) -> Decoded:
        """Decode a credential before the body has arrived, and check all but the body.

        It raises what `verify` raises.
        """
        decoded = self._decode(credential)
        self._check(decoded, head._replace(body_sha256=_body_hash_in(decoded)))
        return decoded

    def accept(self, decoded: Decoded, request: BoundRequest) -> Decoded:
        """Check a decoded credential against the complete request and mark it as used.

        Raises:
            Unauthenticated: it is for another request, or was used before.
            InvalidInput: the request cannot be signed.
        """
        nonce = self._check(decoded, request)
        # Twice as long as this server needs: the clock of another server may be behind.
        expires_at = Instant(decoded.encoded_at + 2 * (self._ttl_seconds + self._skew_seconds))
        if not self._nonces.spend(nonce, decoded.uid, expires_at):
            raise Unauthenticated("this credential was used before", remedy=NEW_CREDENTIAL)
        return decoded

    def _decode(self, credential: bytes) -> Decoded:
        decoded = self._munge.decode(credential)
        if decoded.payload or not self._plain:
            return decoded
        # Each credential has random bytes of its own, and one form only (`munge._check_shape`).
        return decoded._replace(nonce=hashlib.sha256(credential).hexdigest()[:32])

    def _check(self, decoded: Decoded, request: BoundRequest) -> str:
        return check(
            decoded,
            request,
            self._clock.now(),
            ttl_seconds=self._ttl_seconds,
            skew_seconds=self._skew_seconds,
        )


def _body_hash_in(decoded: Decoded) -> str:
    """Return the body hash of a statement; zeros if the payload is no statement."""
    lines = decoded.payload.decode("latin-1").split("\n")
    form = _LINES[_BODY_LINE][1]
    is_statement = len(lines) == len(_LINES) and re.fullmatch(form, lines[_BODY_LINE])
    return lines[_BODY_LINE] if is_statement else "0" * 64


def sign(munge: Munge, request: BoundRequest) -> str:
    """Return the `Authorization` header for one request, valid once."""
    return f"{MUNGE} {munge.encode(statement(request, new_nonce())).decode('ascii')}"


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
