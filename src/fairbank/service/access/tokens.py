"""Tokens: secrets shown once that let a program sign in as a user, with less than the user's rights, for a while.

The bank keeps only a keyed digest: whoever reads the database cannot sign in, and without the key nobody can try tokens against it.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Collection, Iterable, Iterator

import msgspec

from fairbank.bank.ledger import Done, Outcome
from fairbank.bank.query import Page
from fairbank.bank.token import Token
from fairbank.bank.wish import IssueToken, RevokeToken
from fairbank.core import ids
from fairbank.core.errors import Conflict, Forbidden, Malformed, Unauthenticated, Unknown
from fairbank.core.time import DAY, LAST_INSTANT, Clock, Instant, iso
from fairbank.service.access.identity import FULL, Asker
from fairbank.service.access.permissions import Action, check_allowed, is_allowed
from fairbank.service.dry_run import RequestHandler, apply_request
from fairbank.store.contract import Reader, Store

AGENT = "agent:"
DAYS_MAX = 731
LABEL_MAX = 64
CHAIN_MAX = 8
"""How many tokens may have been made each by the one before it."""


class Tokens:
    """The use cases around tokens. They are made and taken back as wishes, so the office's book vouches for each row."""

    def __init__(self, store: Store, judge: RequestHandler, clock: Clock, key: bytes) -> None:
        self._store, self._judge, self._clock, self._key = store, judge, clock, key

    def create(
        self, asker: Asker, *, label: str, scopes: Iterable[str], days: int, uid: int | None = None
    ) -> tuple[Token, str]:
        """A new token and its secret, which nobody will see again. Raises Forbidden, Malformed.

        A superuser may make tokens for others, and tokens for a cluster's agent; all others only for themselves, with no
        more scopes than they have themselves. One made by means of a token is good as long as that one, and no longer.
        """
        if asker.acting_as is not None:
            raise Forbidden(
                "tokens are not made while acting as another user",
                field="X-Fairbank-As",
                remedy="ask in your own name; a superuser says whose token it is to be",
            )
        _check_write_scope(asker)
        owner = asker.uid if uid is None else ids.uid(uid)
        wanted = _checked_scopes(asker, scopes)
        if owner != asker.uid:
            check_allowed(asker, Action.MANAGE_TOKENS)
        if asker.token is not None:
            self._check_chain_length(asker.token)
        now = self._clock.now()
        secret = new_secret()
        wish = IssueToken(
            digest=digest(secret, self._key),
            uid=owner,
            label=_checked_label(label),
            scopes=wanted,
            expires=Instant(
                min(
                    now + _checked_days(days) * DAY,
                    LAST_INSTANT if asker.until is None else asker.until,
                )
            ),
            parent=asker.token,
        )
        outcome = self._ask(asker, wish, now)
        if not isinstance(outcome, Done) or outcome.token is None:
            raise Conflict(
                "this secret is in use already, so no token was made",
                remedy="ask again: the next secret is another",
            )
        return Token(
            id=outcome.token,
            digest=wish.digest,
            uid=owner,
            label=wish.label,
            scopes=wanted,
            created=now,
            expires=wish.expires,
            parent=wish.parent,
        ), secret

    def find(self, secret: str) -> Token:
        """The token of a secret. Raises Unauthenticated, saying whether it is unknown, revoked or expired; never repeats the secret."""
        with self._store.reading() as reader:
            token = reader.token(digest(secret, self._key))
            if token is None:
                raise Unauthenticated(
                    "this token is not known here", remedy="send it whole, or ask for a new one"
                )
            ended = _with_chain_revocation(token, reader)
        if ended.revoked is not None:
            which = (
                "the token" if token.revoked is not None else "the token by which this one was made"
            )
            raise Unauthenticated(
                f"{which} was revoked at {iso(ended.revoked)}", remedy="ask for a new one"
            )
        if self._clock.now() >= token.expires:
            raise Unauthenticated(
                f"the token expired at {iso(token.expires)}", remedy="ask for a new one"
            )
        return token

    def list(self, asker: Asker, uid: int | None, page: Page) -> list[Token]:
        """The tokens of `uid`, or one's own for None, used up ones included: revoked is also what was made by one that is. Raises
        Forbidden."""
        owner = asker.uid if uid is None else uid
        if owner != asker.uid:
            check_allowed(asker, Action.MANAGE_TOKENS)
        with self._store.reading() as reader:
            return [_with_chain_revocation(each, reader) for each in reader.tokens(owner, page)]

    def revoke(self, asker: Asker, number: int) -> Token:
        """Take a token back, on all servers at once. Raises Unknown, for a token that is not there as for one of others; Forbidden."""
        _check_write_scope(asker)
        owner = None if asker.superuser else asker.uid
        outcome = self._ask(asker, RevokeToken(token=number, uid=owner), self._clock.now())
        with self._store.reading() as reader:
            token = next(iter(reader.tokens(owner, Page(1, after=number - 1))), None)
        if not isinstance(outcome, Done) or token is None or token.id != number:
            raise Unknown(
                f"there is no valid token {number}",
                field="token",
                remedy="list yours with: fairbank token list",
            )
        return token

    def _check_chain_length(self, number: int) -> None:
        """Raises Forbidden: at each sign-in by a token all of its line is looked at."""
        with self._store.reading() as reader:
            maker = reader.token_by_id(number)
            line = [] if maker is None else list(_chain(maker, reader))
        if len(line) >= CHAIN_MAX:
            raise Forbidden(
                f"this token is the last of {CHAIN_MAX} that were each made by the one before",
                remedy=_AS_YOURSELF,
            )

    def _ask(self, asker: Asker, wish: IssueToken | RevokeToken, now: Instant) -> Outcome:
        return apply_request(self._judge, asker, wish, now)


def _chain(token: Token, reader: Reader) -> Iterator[Token]:
    """The token, the one by which it was made, and so on."""
    each: Token | None = token
    while each is not None:
        yield each
        each = None if each.parent is None else reader.token_by_id(each.parent)


def _with_chain_revocation(token: Token, reader: Reader) -> Token:
    """The token, revoked where one of its line is: as soon as the first of them was."""
    ends = [each.revoked for each in _chain(token, reader) if each.revoked is not None]
    return msgspec.structs.replace(token, revoked=min(ends)) if ends else token


def new_secret() -> str:
    """A token of 256 random bits."""
    return ids.BEARER_MARK + base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode(
        "ascii"
    )


def digest(secret: str, key: bytes) -> bytes:
    """What the store keeps of a secret."""
    return hashlib.blake2b(
        secret.encode("utf-8"), key=key, digest_size=32, person=b"fairbank token"
    ).digest()


_AS_YOURSELF = "sign in as yourself, or by a token that has it"
_SCOPES = "read, write, agent:CLUSTER, or several of them"


def _checked_scopes(asker: Asker, scopes: Iterable[str]) -> tuple[str, ...]:
    """The scopes in one order. Raises Malformed for words that are none, Forbidden for more than `asker` has."""
    wanted = tuple(sorted(set(scopes)))
    if not wanted:
        raise Malformed("a token needs a scope", field="scopes", remedy=_SCOPES)
    for scope in wanted:
        if scope.startswith(AGENT):
            ids.name(scope.removeprefix(AGENT), field="scopes")
            _check_agent_scope(asker, scope)
        elif scope not in FULL:
            raise Malformed(f"{scope[:64]!r} is not a scope", field="scopes", remedy=_SCOPES)
        elif scope not in asker.scopes:
            raise Forbidden(
                f"you signed in without the scope {scope!r}", field="scopes", remedy=_AS_YOURSELF
            )
    return wanted


def unknown_cluster_warnings(scopes: Iterable[str], clusters: Collection[str]) -> list[str]:
    """What to warn of where a scope is of an agent whose cluster is not in the settings: it may be yet to come, or misspelt."""
    named = [scope.removeprefix(AGENT) for scope in scopes if scope.startswith(AGENT)]
    there = ", ".join(sorted(clusters)) or "none"
    return [
        f"no cluster {name!r} is in the settings yet, so it reports no priced runs; there are: {there}"
        for name in named
        if name not in clusters
    ]


def _check_agent_scope(asker: Asker, scope: str) -> None:
    """Raises Forbidden, for the scope: an agent's is given by superusers only, themselves included."""
    if not is_allowed(asker, Action.MANAGE_TOKENS):
        raise Forbidden(
            f"you may not make tokens with the scope {scope!r}",
            field="scopes",
            remedy="ask a superuser, or leave it out",
        )


def _check_write_scope(asker: Asker) -> None:
    if "write" not in asker.scopes:
        raise Forbidden("you signed in without the scope 'write'", remedy=_AS_YOURSELF)


def _checked_label(label: str) -> str:
    if label.strip() and len(label) <= LABEL_MAX and label.isprintable():
        return label
    raise Malformed(
        "this label cannot be kept",
        field="label",
        remedy=f"1 to {LABEL_MAX} printable characters that say what it is for",
    )


def _checked_days(days: int) -> int:
    if not 1 <= days <= DAYS_MAX:
        raise Malformed(
            f"a token cannot be good for {days} days", field="days", remedy=f"from 1 to {DAYS_MAX}"
        )
    return days


class Nonces:
    """Implementation of rest.auth.credentials.NonceTable."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def spend(self, nonce: str, uid: int, expires_at: Instant) -> bool:
        """Remember a nonce (in hexadecimal) until it expires; False when it was spent before."""
        return self._store.use_nonce(bytes.fromhex(nonce), uid, self._clock.now(), expires_at)
