"""Tokens: secrets, shown once, with which a program signs in as a user.

A token has fewer permissions than its user, for a limited time. The bank stores only a keyed
digest: a reader of the database cannot sign in, and no reader without the key can test a guess.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Collection, Iterable, Iterator

import msgspec

from fairbank.bank.query import Page
from fairbank.bank.requests import IssueToken, RevokeToken
from fairbank.bank.rules import Done
from fairbank.bank.token import Token, TokenGrant
from fairbank.core import ids
from fairbank.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Unauthenticated
from fairbank.core.time import DAY, LAST_INSTANT, Instant, iso
from fairbank.service.access.identity import FULL, Action, Identity, check_allowed, is_allowed
from fairbank.service.use_cases import UseCases
from fairbank.store.contract import Reader

AGENT = "agent:"
DAYS_MAX = 731
LABEL_MAX = 64
CHAIN_MAX = 8
"""Longest chain of tokens that were each made with the one before."""


class Tokens(UseCases):
    """Use cases of tokens. Tokens are issued and revoked by requests, so the registry's journal
    covers each row.
    """

    def create(
        self,
        identity: Identity,
        *,
        label: str,
        scopes: Iterable[str],
        days: int,
        uid: int | None = None,
    ) -> tuple[Token, str]:
        """Create a token.

        Superusers may create tokens for others, and tokens for a cluster's agent. All others create
        only their own, with no more scopes than they have. A token made with a token ends when that
        one ends.

        Args:
            identity: user who creates it.
            label: purpose, shown in lists.
            scopes: scopes of the new token.
            days: lifetime.
            uid: owner; None for the user.

        Returns:
            The token, and its secret, which cannot be shown again.

        Raises:
            Forbidden, InvalidInput: the user may not create this token, or a value is out of range.
        """
        owner, allowed_scopes = self._checked_rights(identity, uid, scopes)
        now = self._clock.now()
        secret = new_secret()
        latest = LAST_INSTANT if identity.until is None else identity.until
        grant = TokenGrant(
            digest=digest(secret, self._context.key),
            uid=owner,
            label=_checked_label(label),
            scopes=allowed_scopes,
            expires=Instant(min(now + _checked_days(days) * DAY, latest)),
            parent=identity.token,
        )
        outcome = self._apply(identity, IssueToken(grant=grant), now)
        if not isinstance(outcome, Done) or outcome.token is None:
            raise Conflict(
                "this secret is in use already, so no token was made",
                remedy="ask again: the next secret is another",
            )
        return Token(id=outcome.token, created=now, **msgspec.structs.asdict(grant)), secret

    def _checked_rights(
        self, identity: Identity, uid: int | None, scopes: Iterable[str]
    ) -> tuple[int, tuple[str, ...]]:
        """Return the owner and the scopes of a new token. Raises Forbidden, InvalidInput."""
        if identity.acting_as is not None:
            raise Forbidden(
                "tokens are not made while acting as another user",
                field="X-Fairbank-As",
                remedy="send the request as yourself; a superuser says whose token it is to be",
            )
        _check_write_scope(identity)
        owner = identity.uid if uid is None else ids.user_uid(uid)
        allowed_scopes = _checked_scopes(identity, scopes)
        if owner != identity.uid:
            check_allowed(identity, Action.MANAGE_TOKENS)
        if identity.token is not None:
            self._check_chain_length(identity.token)
        return owner, allowed_scopes

    def find(self, secret: str) -> Token:
        """Return the token of a secret.

        Raises Unauthenticated with the reason: unknown, revoked or expired. The message never
        contains the secret.
        """
        with self._store.reading() as reader:
            token = reader.token(digest(secret, self._context.key))
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

    def list(self, identity: Identity, uid: int | None, page: Page) -> list[Token]:
        """Return the tokens of a user, ended ones included. Raises Forbidden.

        A token whose chain is revoked is shown as revoked.

        Args:
            identity: the user who asks; others' tokens need the permission to manage tokens.
            uid: the owner; None for the own tokens.
            page: the rows of the page; `page.after` is the number of a token.
        """
        owner = identity.uid if uid is None else uid
        if owner != identity.uid:
            check_allowed(identity, Action.MANAGE_TOKENS)
        with self._store.reading() as reader:
            return [_with_chain_revocation(token, reader) for token in reader.tokens(owner, page)]

    def revoke(self, identity: Identity, number: int) -> Token:
        """Revoke a token, on all servers at once.

        Raises Forbidden, and NotFound for a missing token as for a token of others.
        """
        _check_write_scope(identity)
        owner = None if identity.superuser else identity.uid
        outcome = self._apply(identity, RevokeToken(token=number, uid=owner))
        with self._store.reading() as reader:
            token = next(iter(reader.tokens(owner, Page(1, after=number - 1))), None)
        if not isinstance(outcome, Done) or token is None or token.id != number:
            raise NotFound(
                f"there is no valid token {number}",
                field="token",
                remedy="list yours with: fairbank token list",
            )
        return token

    def _check_chain_length(self, number: int) -> None:
        """Raise Forbidden if a token of this token would be too deep: each sign-in reads its whole
        chain.
        """
        with self._store.reading() as reader:
            maker = reader.token_by_id(number)
            line = [] if maker is None else list(_chain(maker, reader))
        if len(line) >= CHAIN_MAX:
            raise Forbidden(
                f"this token is the last of {CHAIN_MAX} that were each made by the one before",
                remedy=_AS_YOURSELF,
            )


def _chain(token: Token, reader: Reader) -> Iterator[Token]:
    """Yield the token, then the one it was made with, and so on."""
    current: Token | None = token
    while current is not None:
        yield current
        current = None if current.parent is None else reader.token_by_id(current.parent)


def _with_chain_revocation(token: Token, reader: Reader) -> Token:
    """Return the token as revoked from the moment when the first of its chain was."""
    ends = [made.revoked for made in _chain(token, reader) if made.revoked is not None]
    return msgspec.structs.replace(token, revoked=min(ends)) if ends else token


def new_secret() -> str:
    """Return a secret of 256 random bits."""
    return ids.BEARER_MARK + base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode(
        "ascii"
    )


def digest(secret: str, key: bytes) -> bytes:
    """Return the keyed digest that the store keeps of a secret."""
    return hashlib.blake2b(
        secret.encode("utf-8"), key=key, digest_size=32, person=b"fairbank token"
    ).digest()


_AS_YOURSELF = "sign in as yourself, or by a token that has it"
_SCOPES = "read, write, agent:CLUSTER, or several of them"


def _checked_scopes(identity: Identity, scopes: Iterable[str]) -> tuple[str, ...]:
    """Return the scopes, sorted. Raises InvalidInput for unknown ones, Forbidden for those the user
    lacks.
    """
    wanted = tuple(sorted(set(scopes)))
    if not wanted:
        raise InvalidInput("a token needs a scope", field="scopes", remedy=_SCOPES)
    for scope in wanted:
        if scope.startswith(AGENT):
            ids.cluster(scope.removeprefix(AGENT), field="scopes")
            _check_agent_scope(identity, scope)
        elif scope not in FULL:
            raise InvalidInput(f"{scope[:64]!r} is not a scope", field="scopes", remedy=_SCOPES)
        elif scope not in identity.scopes:
            raise Forbidden(
                f"you signed in without the scope {scope!r}", field="scopes", remedy=_AS_YOURSELF
            )
    return wanted


def unknown_cluster_warnings(scopes: Iterable[str], clusters: Collection[str]) -> list[str]:
    """Return warnings for agent scopes of clusters that the settings do not name (yet)."""
    named = [scope.removeprefix(AGENT) for scope in scopes if scope.startswith(AGENT)]
    there = ", ".join(sorted(clusters)) or "none"
    return [
        f"no cluster {name!r} is in the settings yet, so it reports no priced runs;"
        f" there are: {there}"
        for name in named
        if name not in clusters
    ]


def _check_agent_scope(identity: Identity, scope: str) -> None:
    """Raise Forbidden for an agent's scope unless the user is a superuser."""
    if not is_allowed(identity, Action.MANAGE_TOKENS):
        raise Forbidden(
            f"you may not make tokens with the scope {scope!r}",
            field="scopes",
            remedy="ask a superuser, or leave it out",
        )


def _check_write_scope(identity: Identity) -> None:
    if "write" not in identity.scopes:
        raise Forbidden("you signed in without the scope 'write'", remedy=_AS_YOURSELF)


def _checked_label(label: str) -> str:
    if label.strip() and len(label) <= LABEL_MAX and label.isprintable():
        return label
    raise InvalidInput(
        "this label cannot be kept",
        field="label",
        remedy=f"1 to {LABEL_MAX} printable characters that say what it is for",
    )


def _checked_days(days: int) -> int:
    if not 1 <= days <= DAYS_MAX:
        raise InvalidInput(
            f"a token cannot be good for {days} days", field="days", remedy=f"from 1 to {DAYS_MAX}"
        )
    return days


class Nonces(UseCases):
    """Spent nonces of MUNGE credentials, in the store: durable, and shared by all servers of a
    bank.
    """

    def spend(self, nonce: str, uid: int, expires_at: Instant) -> bool:
        """Store a hexadecimal nonce until it expires. Returns False if it was spent before."""
        return self._store.use_nonce(bytes.fromhex(nonce), uid, self._clock.now(), expires_at)
