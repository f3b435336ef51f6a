"""Tokens: one's own, and for superusers everybody's."""

from __future__ import annotations

from litestar import delete, post
from litestar.params import JSONBody

from fairbank.rest.asking import Asking
from fairbank.rest.asking.params import PAGE, Number, OnePage, OneUid
from fairbank.rest.bodies.answers import Listing, Single, TokenCard, TokenRow
from fairbank.rest.bodies.requests import NewToken
from fairbank.rest.verbs import reads, writes
from fairbank.rest.views import by_id, cut, listing, single, token_card, token_row
from fairbank.service.access.tokens import unknown_cluster_warnings


@reads("/token", dependencies={"page": PAGE})
def list_tokens(request: Asking, page: OnePage, uid: OneUid = None) -> Listing[TokenRow]:
    """Tokens by their labels; never their secrets."""
    found, following = cut(
        page.limit, request.services.tokens.list(request.asker, uid, page.and_one), by_id
    )
    return listing("token", request.services.clock, [token_row(each) for each in found], following)


@writes(post, "/token")
def make_token(request: Asking, data: JSONBody[NewToken]) -> Single[TokenCard]:
    """A new token. Its secret is in this answer and nowhere else."""
    token, secret = request.services.tokens.create(
        request.asker, label=data.label, scopes=data.scopes, days=data.days, uid=data.uid
    )
    warnings = unknown_cluster_warnings(token.scopes, request.services.clusters)
    return single("token", request.services.clock, token_card(token, secret, warnings))


@writes(delete, "/token/{token:int}", status_code=200)
def revoke_token(request: Asking, token: Number) -> Single[TokenRow]:
    """Take a token back, at once and on all servers."""
    return single(
        "token",
        request.services.clock,
        token_row(request.services.tokens.revoke(request.asker, token)),
    )


ROUTES = (list_tokens, make_token, revoke_token)
