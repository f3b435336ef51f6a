"""Rules of tokens: a token is created once and revoked once, and the registry records both."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fairbank.bank.entry import Entry, Kind
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import IssueToken, RevokeToken, SubmittedRequest
from fairbank.bank.rules.context import Done, Outcome, RuleContext, done
from fairbank.bank.token import Token
from fairbank.bank.transaction_data import TransactionData
from fairbank.core.time import Instant

_replace = msgspec.structs.replace

RESTORED = "revoked before the restore"


def issue(context: RuleContext, request: IssueToken) -> Outcome:
    """Create a token. A repeated request gets the same answer; two tokens never have one secret."""
    data = context.data
    known = next((each for each in data.tokens.values() if each.digest == request.digest), None)
    if known is None:
        token = Token(
            id=next(data.token_ids),
            digest=request.digest,
            uid=request.uid,
            label=request.label,
            scopes=request.scopes,
            created=context.at,
            expires=request.expires,
            parent=request.parent,
        )
        entry = _enter(context, token)
        data.put_token(token)
        return done(entry, None, token=token.id)
    kept = (known.uid, known.label, known.scopes, known.expires, known.parent)
    if kept != (request.uid, request.label, request.scopes, request.expires, request.parent):
        return Refusal(Reason.TOKEN_TAKEN)
    return Done(entry=0, token=known.id, again=True)


def revoke(context: RuleContext, request: RevokeToken) -> Outcome:
    """Revoke a token. The token of another user is treated as one that does not exist."""
    token = context.data.tokens.get(request.token)
    if (
        token is None
        or request.uid not in (None, token.uid)
        or token.revoked is not None
        or token.expires <= context.at
    ):
        return Refusal(Reason.UNKNOWN_TOKEN)
    revoked = _replace(token, revoked=context.at)
    entry = _enter(context, revoked)
    context.data.put_token(revoked)
    return done(entry, None, token=token.id)


def stay_revoked(data: TransactionData, tokens: Iterable[Token], at: Instant) -> None:
    """Record that tokens, valid in a backup, were revoked after it. The actor is 0: no user."""
    for each in tokens:
        request = RevokeToken(token=each.id, comment=RESTORED)
        _enter(RuleContext(data, SubmittedRequest(request, at, 0)), each)


def _enter(context: RuleContext, token: Token) -> Entry:
    """Add an entry with all fields of a token, by which the audit checks its row."""
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
    return context.post(Kind.TOKEN, 0, None, facts, owner=token.uid)
