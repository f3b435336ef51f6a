"""API tokens: a user's own, and for superusers those of all users."""

from __future__ import annotations

from litestar import delete, post
from litestar.params import JSONBody

from fairbank.rest.parameters import PAGE, Number, OnePage, OneUid
from fairbank.rest.request import ApiRequest
from fairbank.rest.routing import read_route, write_route
from fairbank.rest.schemas.answers import ItemResponse, ListResponse
from fairbank.rest.schemas.envelope import item_response, list_response, split_page
from fairbank.rest.schemas.requests import NewToken
from fairbank.rest.schemas.server import TokenCard, TokenRow, token_card, token_row
from fairbank.service.access.tokens import unknown_cluster_warnings


@read_route("/token", dependencies={"page": PAGE})
def list_tokens(request: ApiRequest, page: OnePage, uid: OneUid = None) -> ListResponse[TokenRow]:
    """List tokens without their secrets."""
    tokens, next_ = split_page(
        page.limit, request.services.tokens.list(request.identity, uid, page.and_one)
    )
    rows = [token_row(token) for token in tokens]
    return list_response("token", request.services.clock, rows, next_)


@write_route(post, "/token")
def make_token(request: ApiRequest, data: JSONBody[NewToken]) -> ItemResponse[TokenCard]:
    """Create a token. Only this response contains its secret."""
    token, secret = request.services.tokens.create(
        request.identity, label=data.label, scopes=data.scopes, days=data.days, uid=data.uid
    )
    warnings = unknown_cluster_warnings(token.scopes, request.services.clusters)
    card = token_card(token, secret, warnings)
    return item_response("token", request.services.clock, card)


@write_route(delete, "/token/{token:int}", status_code=200)
def revoke_token(request: ApiRequest, token: Number) -> ItemResponse[TokenRow]:
    """Revoke a token, at once and on all servers."""
    revoked = request.services.tokens.revoke(request.identity, token)
    return item_response("token", request.services.clock, token_row(revoked))


ROUTES = (list_tokens, make_token, revoke_token)
