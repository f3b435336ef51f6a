"""A MUNGE credential bound to one request, to one server, for one time: its payload is the statement of the request.

The statement is eight lines without a newline at the end, so that a shell script can make one with printf, sha256sum and munge:

    fairbank request 1
    POST
    /job?page=2                               path and query as sent, percent-encoded
    e3b0c44298fc1c149afbf4c8996fb924...       SHA-256 of the body in hexadecimal
    bank.example.org                          the server's name
                                              X-Fairbank-As as sent, empty when there is none
    2c1d-deposit-7                            Idempotency-Key as sent, empty when there is none
    0f1e2d3c4b5a69788796a5b4c3d2e1f0          the nonce, new for each request
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import NamedTuple, Protocol

from fairbank.core.errors import InvalidInput, Unauthenticated
from fairbank.core.time import Clock, Instant
from fairbank.rest.sign_in.munge import SAME_TIME, SIGN_ANEW, Decoded, Munge

MUNGE = "Munge"

TTL_SECONDS = 300  # munged's own default
SKEW_SECONDS = 60


class BoundRequest(NamedTuple):
    """One request to one server, as far as a credential binds it."""

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
        """The request as it goes over the wire; `audience` is the server's configured name.

        `acting_as` and `key` are the two headers that change what a request does: X-Fairbank-As and Idempotency-Key.
        """
        return cls(method, target, body_hash(body), audience, acting_as or "", key or "")


def body_hash(body: bytes) -> str:
    """As the statement has it."""
    return hashlib.sha256(body).hexdigest()


def target_of(raw_path: bytes, query: bytes) -> str:
    """Path and query as the client sent them. An empty query and none are the same."""
    return (raw_path + b"?" + query if query else raw_path).decode("latin-1")


# Each line of the statement: its name, its grammar, its longest. None can hold a newline, so no two requests have one statement.
_VERSION = "fairbank request 1"
_LINES = (
    ("version", _VERSION, len(_VERSION)),
    ("method", "[A-Z]+", 16),
    ("path or query", r"/[\x21-\x7e]*", 8_192),
    ("body hash", "[0-9a-f]{64}", 64),
    ("server name", r"[\x21-\x7e]+", 255),
    ("user acted as", r"[\x21-\x7e]*", 64),
    ("idempotency key", r"[\x21-\x7e]*", 128),
    ("nonce", "[0-9a-f]{32}", 32),
)

_BODY = 3
_ANOTHER = {
    "server name": "sign with this server's name: FAIRBANK_SERVER_NAME at the client is [server] name of the bank's settings"
}
"""What helps where it is not the request that is another."""


def new_nonce() -> str:
    return os.urandom(16).hex()


def statement(asked: BoundRequest, nonce: str) -> bytes:
    """The bytes to seal: no two requests, servers or nonces give the same. Raises InvalidInput, naming the line."""
    lines = (_VERSION, *asked, nonce)
    for line, (name, grammar, longest) in zip(lines, _LINES, strict=True):
        if len(line) > longest or not re.fullmatch(grammar, line):
            raise InvalidInput(
                f"the {name} {line[:64]!r} cannot be signed",
                field=name,
                remedy=f"at most {longest} characters, printable ASCII without blanks; percent-encode the rest",
            )
    return "\n".join(lines).encode("ascii")


def check(
    decoded: Decoded,
    asked: BoundRequest,
    now: Instant,
    *,
    ttl_seconds: int = TTL_SECONDS,
    skew_seconds: int = SKEW_SECONDS,
) -> str:
    """The nonce of a credential that was made for this request, and lately. Raises Unauthenticated, saying what differs.

    That nobody used it before is the nonce table's to say.
    """
    sealed = decoded.payload.decode("latin-1").split("\n")
    nonce = sealed[-1]
    if (
        len(sealed) != len(_LINES)
        or sealed[0] != _VERSION
        or not re.fullmatch(_LINES[-1][1], nonce)
    ):
        raise Unauthenticated(
            "the credential was not made for Fairbank",
            remedy="its payload must be the statement of the request",
        )
    if decoded.payload != statement(asked, nonce):
        wrong = next(
            name
            for (name, *_), was, is_now in zip(
                _LINES, sealed, (_VERSION, *asked, nonce), strict=True
            )
            if was != is_now
        )
        raise Unauthenticated(
            f"the credential is for another request: the {wrong} differs",
            remedy=_ANOTHER.get(wrong, SIGN_ANEW),
        )
    age = now - decoded.encoded_at
    if age > ttl_seconds:
        raise Unauthenticated(
            f"the credential has expired: it is {age} s old, good for {ttl_seconds} s",
            remedy=SIGN_ANEW,
        )
    if age < -skew_seconds:
        raise Unauthenticated(
            f"clock skew: the credential was made {-age} s in the future of this server",
            remedy=SAME_TIME,
        )
    return nonce


class NonceTable(Protocol):
    """The nonces that were spent: durable, and one for all servers of a bank.

    munged remembers too, but each daemon for itself, and a restart makes it forget.
    """

    def spend(self, nonce: str, uid: int, expires_at: Instant) -> bool:
        """True for the first who spends it, among all servers; False after that, at least until `expires_at`."""
        ...


class MungeDoor:
    """Lets in who signed this very request, once. It blocks: call it from a worker thread."""

    def __init__(
        self,
        munge: Munge,
        nonces: NonceTable,
        clock: Clock,
        *,
        ttl_seconds: int = TTL_SECONDS,
        skew_seconds: int = SKEW_SECONDS,
    ) -> None:
        self._munge, self._nonces, self._clock = munge, nonces, clock
        self._ttl_seconds, self._skew_seconds = ttl_seconds, skew_seconds

    def admit(self, credential: bytes, asked: BoundRequest) -> Decoded:
        """Who asks (`uid`, `gid`). Raises Unauthenticated, Unavailable when munged is silent, InvalidInput for an unsignable request."""
        return self.settle(self._munge.decode(credential), asked)

    def open(self, credential: bytes, head: BoundRequest) -> Decoded:
        """Open a credential before the body is there: everything but the body must be as it says. Raises what `admit` raises."""
        decoded = self._munge.decode(credential)
        self._nonce(decoded, head._replace(body_sha256=_body_in(decoded)))
        return decoded

    def settle(self, decoded: Decoded, asked: BoundRequest) -> Decoded:
        """The last word on an opened credential, once the whole request is there: it is spent. Raises Unauthenticated, InvalidInput."""
        nonce = self._nonce(decoded, asked)
        # Twice as long as this server needs: the next one's clock may be behind.
        expires_at = Instant(decoded.encoded_at + 2 * (self._ttl_seconds + self._skew_seconds))
        if not self._nonces.spend(nonce, decoded.uid, expires_at):
            raise Unauthenticated("this credential was used before", remedy=SIGN_ANEW)
        return decoded

    def _nonce(self, decoded: Decoded, asked: BoundRequest) -> str:
        return check(
            decoded,
            asked,
            self._clock.now(),
            ttl_seconds=self._ttl_seconds,
            skew_seconds=self._skew_seconds,
        )


def _body_in(decoded: Decoded) -> str:
    """The body's hash as a statement has it; nobody's where it is no statement."""
    grammar = _LINES[_BODY][1]
    said = decoded.payload.decode("latin-1").split("\n")
    return (
        said[_BODY] if len(said) == len(_LINES) and re.fullmatch(grammar, said[_BODY]) else "0" * 64
    )


def sign(munge: Munge, asked: BoundRequest) -> str:
    """The client's `Authorization` for one request, good once."""
    return f"{MUNGE} {munge.encode(statement(asked, new_nonce())).decode('ascii')}"
