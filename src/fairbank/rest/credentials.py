"""What proves who asks: a MUNGE credential bound to one request, or an opaque token. Both travel in `Authorization`.

    Authorization: Munge MUNGE:AwQFAA...:     its payload is the statement of this very request
    Authorization: Bearer fbk_Zk3v...         good until it expires or is taken back

One header for both, so that no request carries two identities. The statement is eight lines without a newline at the end,
so that a shell script can make one with printf, sha256sum and munge:

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
from collections.abc import Iterable
from contextlib import suppress
from stat import S_ISREG
from typing import TYPE_CHECKING, NamedTuple, Protocol

from fairbank.rest.munge import Decoded, Munge
from fairbank.values import ids
from fairbank.values.time import Clock, Instant
from fairbank.values.trouble import Corrupt, Forbidden, Malformed, Unauthenticated, Unknown

if TYPE_CHECKING:
    from pathlib import Path  # for its name only: the everyday command comes through here

MUNGE, BEARER = "Munge", "Bearer"
CHALLENGE = f"{MUNGE}, {BEARER}"  # for WWW-Authenticate in every 401

TTL_SECONDS = 300  # munged's own default
SKEW_SECONDS = 60
_SIGN_ANEW = "make a new credential for each request"
_SAME_TIME = "keep the clocks of both hosts right (chrony or ntpd)"


class Asked(NamedTuple):
    """One request to one server, as far as a credential binds it."""

    method: str
    target: str
    body_sha256: str
    audience: str
    acting_as: str = ""
    key: str = ""

    @classmethod
    def of(cls, method: str, target: str, body: bytes, audience: str, *, acting_as: str | None = None, key: str | None = None) -> Asked:
        """The request as it goes over the wire; `audience` is the server's configured name.

        `acting_as` and `key` are the two headers that change what a request does: X-Fairbank-As and Idempotency-Key.
        """
        return cls(method, target, hashlib.sha256(body).hexdigest(), audience, acting_as or "", key or "")


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


def new_nonce() -> str:
    return os.urandom(16).hex()


def statement(asked: Asked, nonce: str) -> bytes:
    """The bytes to seal: no two requests, servers or nonces give the same. Raises Malformed, naming the line."""
    lines = (_VERSION, *asked, nonce)
    for line, (name, grammar, longest) in zip(lines, _LINES, strict=True):
        if len(line) > longest or not re.fullmatch(grammar, line):
            raise Malformed(
                f"the {name} {line[:64]!r} cannot be signed",
                field=name,
                remedy=f"at most {longest} characters, printable ASCII without blanks; percent-encode the rest",
            )
    return "\n".join(lines).encode("ascii")


def check(decoded: Decoded, asked: Asked, now: Instant, *, ttl_seconds: int = TTL_SECONDS, skew_seconds: int = SKEW_SECONDS) -> str:
    """The nonce of a credential that was made for this request, and lately. Raises Unauthenticated, saying what differs.

    That nobody used it before is the nonce table's to say.
    """
    sealed = decoded.payload.decode("latin-1").split("\n")
    nonce = sealed[-1]
    if len(sealed) != len(_LINES) or sealed[0] != _VERSION or not re.fullmatch(_LINES[-1][1], nonce):
        raise Unauthenticated("the credential was not made for Fairbank", remedy="its payload must be the statement of the request")
    if decoded.payload != statement(asked, nonce):
        wrong = next(name for (name, *_), was, is_now in zip(_LINES, sealed, (_VERSION, *asked, nonce), strict=True) if was != is_now)
        raise Unauthenticated(f"the credential is for another request: the {wrong} differs", remedy=_SIGN_ANEW)
    age = now - decoded.encoded_at
    if age > ttl_seconds:
        raise Unauthenticated(f"the credential has expired: it is {age} s old, good for {ttl_seconds} s", remedy=_SIGN_ANEW)
    if age < -skew_seconds:
        raise Unauthenticated(f"clock skew: the credential was made {-age} s in the future of this server", remedy=_SAME_TIME)
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
        self, munge: Munge, nonces: NonceTable, clock: Clock, *, ttl_seconds: int = TTL_SECONDS, skew_seconds: int = SKEW_SECONDS
    ) -> None:
        self._munge, self._nonces, self._clock = munge, nonces, clock
        self._ttl_seconds, self._skew_seconds = ttl_seconds, skew_seconds

    def admit(self, credential: bytes, asked: Asked) -> Decoded:
        """Who asks (`uid`, `gid`). Raises Unauthenticated, Unreachable when munged is silent, Malformed for an unsignable request."""
        decoded = self._munge.decode(credential)
        nonce = check(decoded, asked, self._clock.now(), ttl_seconds=self._ttl_seconds, skew_seconds=self._skew_seconds)
        # Twice as long as this server needs: the next one's clock may be behind.
        expires_at = Instant(decoded.encoded_at + 2 * (self._ttl_seconds + self._skew_seconds))
        if not self._nonces.spend(nonce, decoded.uid, expires_at):
            raise Unauthenticated("this credential was used before", remedy=_SIGN_ANEW)
        return decoded


def sign(munge: Munge, asked: Asked) -> str:
    """The client's `Authorization` for one request, good once."""
    return f"{MUNGE} {munge.encode(statement(asked, new_nonce())).decode('ascii')}"


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
    raise Unauthenticated("this way of signing in is not known here", remedy=f"Authorization: {MUNGE} ... or {BEARER} ...")


def read_munge(header: str) -> bytes:
    """The credential in `Authorization: Munge ...`. Raises Unauthenticated."""
    return _after(MUNGE, header).encode("ascii", "replace")


def read_token(header: str) -> str:
    """The token in `Authorization: Bearer fbk_...`. Raises Unauthenticated; never repeats the token."""
    token = _after(BEARER, header)
    if not _TOKEN.fullmatch(token):
        raise Unauthenticated("this is not a token of Fairbank", remedy=f"a token starts with {ids.BEARER_MARK} and is sent whole")
    return token


def _after(scheme: str, header: str) -> str:
    if scheme_of(header) != scheme:
        raise Unauthenticated(f"the request is not signed with {scheme}", remedy=f"Authorization: {scheme} ...")
    return header[len(scheme) :].strip(" ")


# What a token looks like. What it is worth is for `service.tokens` to say, which makes and keeps them.

_TOKEN = re.compile(ids.BEARER_MARK + "[A-Za-z0-9_-]{43}")


# The key of the digests.

_KEY_BYTES = 32


def read_secret(path: Path, *, create: bool = False) -> bytes:
    """The key kept in a file, made there first when `create` allows.

    Raises Unknown without a file, Forbidden when others may read or replace it, Corrupt when it holds no key.
    """
    try:
        if create and not path.exists():
            _make_private(path, os.urandom(_KEY_BYTES).hex() + "\n")
        return _read_private(path)
    except FileNotFoundError as missing:
        raise Unknown(f"there is no key in {path}", field="secret", remedy="make one with: fairbank init") from missing
    except OSError as bad:
        raise Forbidden(
            f"the key in {path} cannot be used: {bad.strerror}", field="secret", remedy="make it a plain file of the bank's user"
        ) from bad


def _read_private(path: Path) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        kept, text = os.fstat(file), os.read(file, 2 * _KEY_BYTES + 2)
    finally:
        os.close(file)
    if not S_ISREG(kept.st_mode) or kept.st_uid not in (0, os.geteuid()) or kept.st_mode & 0o077:
        raise Forbidden(
            f"others can read or change the key in {path}", field="secret", remedy=f"chown it to the bank's user; chmod 600 {path}"
        )
    if not re.fullmatch(rb"[0-9a-f]{%d}\n?" % (2 * _KEY_BYTES), text):
        raise Corrupt(
            f"{path} holds no key", field="secret", remedy=f"one line of {2 * _KEY_BYTES} hexadecimal digits; restore it from a backup"
        )
    return bytes.fromhex(text.decode("ascii"))


def _make_private(path: Path, text: str) -> None:
    """Write aside, then link: whoever looks sees no file or a whole one, and of two makers one wins."""
    aside = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(aside, path)
    finally:
        aside.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
