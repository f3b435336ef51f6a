"""Rules of tokens: a token is created once and revoked once, and the registry records both."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fairbank.bank.entry import Entry, Kind
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import IssueToken, RevokeToken, SubmittedRequest
from fairbank.bank.rules.outcome import Done, Outcome, done
from fairbank.bank.token import Token
from fairbank.bank.transaction_data import TransactionData
from fairbank.core.time import Instant

_encode = msgspec.json.Encoder().encode
_replace = msgspec.structs.replace

RESTORED = "revoked before the restore"


def issue(data: TransactionData, submitted: SubmittedRequest, request: IssueToken) -> Outcome:
    """Create a token. A repeated request gets the same answer; two tokens never have one secret."""
    known = next((each for each in data.tokens.values() if each.digest == request.digest), None)
    if known is None:
        token = Token(
            id=next(data.token_ids),
            digest=request.digest,
            uid=request.uid,
            label=request.label,
            scopes=request.scopes,
            created=submitted.at,
            expires=request.expires,
            parent=request.parent,
        )
        entry = _enter(data, submitted, token)
        data.add_token(token)
        return done(entry, None, token=token.id)
    kept = (known.uid, known.label, known.scopes, known.expires, known.parent)
    if kept != (request.uid, request.label, request.scopes, request.expires, request.parent):
        return Refusal(reason=Reason.TOKEN_TAKEN)
    return Done(entry=0, token=known.id, again=True)


def revoke(data: TransactionData, submitted: SubmittedRequest, request: RevokeToken) -> Outcome:
    """Revoke a token. The token of another user is treated as one that does not exist."""
    token = data.tokens.get(request.token)
    if (
        token is None
        or request.uid not in (None, token.uid)
        or token.revoked is not None
        or token.expires <= submitted.at
    ):
        return Refusal(reason=Reason.UNKNOWN_TOKEN)
    revoked = _replace(token, revoked=submitted.at)
    entry = _enter(data, submitted, revoked)
    data.put_token(revoked)
    return done(entry, None, token=token.id)


def details_of(token: Token) -> str:
    """Return the details of an entry with all fields of a token, by which the audit checks its
    row.
    """
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


def stay_revoked(data: TransactionData, tokens: Iterable[Token], at: Instant) -> None:
    """Record that tokens which a backup has as valid were revoked after it. No user did it: actor
    0.
    """
    for each in tokens:
        _enter(data, SubmittedRequest(RevokeToken(token=each.id, comment=RESTORED), at, 0), each)


def _enter(data: TransactionData, submitted: SubmittedRequest, token: Token) -> Entry:
    return data.post(submitted, Kind.TOKEN, 0, None, owner=token.uid, details=details_of(token))
