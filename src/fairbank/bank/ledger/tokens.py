"""The rules of tokens: each is made once and revoked once, and the office's book says so."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fairbank.bank.entry import Entry, Kind
from fairbank.bank.ledger.outcome import Done, Outcome, done
from fairbank.bank.refusal import Reason, Refusal
from fairbank.bank.token import Token
from fairbank.bank.wish import Asked, IssueToken, RevokeToken
from fairbank.bank.working_set import WorkingSet
from fairbank.core.time import Instant

_encode = msgspec.json.Encoder().encode
_replace = msgspec.structs.replace

RESTORED = "revoked before the restore"


def issue(work: WorkingSet, asked: Asked, wish: IssueToken) -> Outcome:
    """Make a token. The same again is answered again; one secret is never two tokens."""
    known = next((each for each in work.tokens.values() if each.digest == wish.digest), None)
    if known is None:
        token = Token(
            id=next(work.token_ids),
            digest=wish.digest,
            uid=wish.uid,
            label=wish.label,
            scopes=wish.scopes,
            created=asked.at,
            expires=wish.expires,
            parent=wish.parent,
        )
        entry = _enter(work, asked, token)
        work.add_token(token)
        return done(entry, None, token=token.id)
    kept = (known.uid, known.label, known.scopes, known.expires, known.parent)
    if kept != (wish.uid, wish.label, wish.scopes, wish.expires, wish.parent):
        return Refusal(reason=Reason.TOKEN_TAKEN)
    return Done(entry=0, token=known.id, again=True)


def revoke(work: WorkingSet, asked: Asked, wish: RevokeToken) -> Outcome:
    """Revoke a token. One of somebody else is answered like one that is not there."""
    token = work.tokens.get(wish.token)
    if (
        token is None
        or wish.uid not in (None, token.uid)
        or token.revoked is not None
        or token.expires <= asked.at
    ):
        return Refusal(reason=Reason.UNKNOWN_TOKEN)
    revoked = _replace(token, revoked=asked.at)
    entry = _enter(work, asked, revoked)
    work.put_token(revoked)
    return done(entry, None, token=token.id)


def details_of(token: Token) -> str:
    """The token as the journal keeps it, so that its row can be checked against it."""
    facts = {
        "token": token.id,
        "digest": token.digest.hex(),
        "uid": token.uid,
        "label": token.label,
        "scopes": token.scopes,
        "created": token.created,
        "expires": token.expires,
        "revoked": token.revoked,
        "parent": token.parent,
    }
    return _encode(facts).decode()


def stay_revoked(work: WorkingSet, tokens: Iterable[Token], at: Instant) -> None:
    """Enter in the journal that tokens which a backup has as valid were revoked after it was taken. Nobody asked, so the actor is 0."""
    for each in tokens:
        _enter(work, Asked(RevokeToken(token=each.id, comment=RESTORED), at, 0), each)


def _enter(work: WorkingSet, asked: Asked, token: Token) -> Entry:
    return work.post(asked, Kind.TOKEN, 0, None, owner=token.uid, details=details_of(token))
