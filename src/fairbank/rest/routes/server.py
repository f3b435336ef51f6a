"""The server: its user, tokens, metrics, clusters, journal chains and documentation."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from litestar import Response, delete, post
from litestar.exceptions import NotFoundException
from litestar.params import FromPath, JSONBody

from fairbank.core.errors import Forbidden
from fairbank.core.time import iso
from fairbank.rest.metrics import CONTENT_TYPE
from fairbank.rest.parameters import PAGE, Number, OnePage, OneUid
from fairbank.rest.request import ApiRequest
from fairbank.rest.routing import READING, open_route, read_route, write_route
from fairbank.rest.schemas.answers import ItemResponse, ListResponse, Myself
from fairbank.rest.schemas.envelope import (
    envelope,
    item_response,
    list_response,
    page_response,
    split_page,
)
from fairbank.rest.schemas.requests import NewToken
from fairbank.rest.schemas.server import (
    AuditAnswer,
    AuditFigures,
    ChainHead,
    ClusterRow,
    Health,
    IssuedToken,
    TokenRow,
    cluster_row,
    issued_token,
    myself,
    token_row,
)
from fairbank.service.access.identity import Action, check_allowed
from fairbank.service.access.tokens import unknown_cluster_warnings
from fairbank.unix_users import find_user


@open_route("/health", sync_to_thread=False)
def show_health(request: ApiRequest) -> Health:
    """Confirm that the server answers. Of the bank, the response contains only name and time."""
    return Health(bank=request.context.name, as_of=iso(request.services.clock.now()))


@read_route("/whoami", opt={"scope": "none"})
def show_myself(request: ApiRequest) -> ItemResponse[Myself]:
    """Return the authenticated user and the user's permissions."""
    identity = request.identity
    return item_response(request.context, myself(identity, find_user(identity.uid)))


@read_route("/metrics", media_type="text/plain")
def show_metrics(request: ApiRequest) -> Response[str]:
    """Return the metrics in the format of Prometheus, for staff."""
    if not request.identity.visibility.everything:
        raise Forbidden(
            "the server's metrics are for staff", remedy="ask a superuser for a token of an admin"
        )
    page = request.context.metrics.page().decode()
    return Response(page, headers={"content-type": CONTENT_TYPE})


@read_route("/cluster", sync_to_thread=False)
def list_clusters(request: ApiRequest) -> ListResponse[ClusterRow]:
    """List the clusters with their partitions, weights, QOS factors and free states, for every
    authenticated user.
    """
    services = request.services
    rows = [
        cluster_row(cluster, services.free_states, services.categories)
        for _, cluster in sorted(services.clusters.items())
    ]
    return list_response(ClusterRow, request.context, rows)


@read_route("/audit", dependencies={"page": PAGE})
def show_heads(request: ApiRequest, page: OnePage) -> AuditAnswer:
    """Return the last link of each journal. A copy stored elsewhere reveals a journal that was
    rewritten from its start.
    """
    check_allowed(request.identity, Action.AUDIT)
    entries, registry, allocations = request.services.audit.state(page.and_one)
    heads, next_ = split_page(page.limit, allocations, lambda head: head.allocation)
    figures = AuditFigures(
        entries=entries,
        registry_seq=registry.seq,
        registry_link=registry.link.hex(),
        heads=[
            ChainHead(allocation=head.allocation, seq=head.seq, link=head.link.hex())
            for head in heads
        ],
    )
    return AuditAnswer(**envelope(AuditAnswer, request.context), data=figures, next=next_)


_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FILES = {
    "swagger-ui-bundle.js": ("static/swagger-ui/swagger-ui-bundle.js", "text/javascript"),
    "swagger-ui.css": ("static/swagger-ui/swagger-ui.css", "text/css"),
    "start.js": ("static/start.js", "text/javascript"),
}


@open_route("/openapi.json", sync_to_thread=False)
def show_document(request: ApiRequest) -> Response[Any]:
    """Return this document."""
    return Response(request.app.state.document, media_type="application/json")


@open_route("/docs", media_type="text/html")
def show_docs() -> Response[str]:
    """Return a page to browse this document and to try requests."""
    return Response(_read("static/index.html").decode(), headers={"content-security-policy": _CSP})


@open_route("/docs/{file:str}", media_type="text/javascript", responses={404: READING[404]})
def show_asset(file: FromPath[str]) -> Response[bytes]:
    """Return a script or a style sheet of that page."""
    if file not in _FILES:
        raise NotFoundException
    path, media_type = _FILES[file]
    headers = {"cache-control": "public, max-age=86400"}
    return Response(_read(path), media_type=media_type, headers=headers)


@cache
def _read(path: str) -> bytes:
    return files("fairbank.rest").joinpath(path).read_bytes()


@read_route("/token", dependencies={"page": PAGE})
def list_tokens(request: ApiRequest, page: OnePage, uid: OneUid = None) -> ListResponse[TokenRow]:
    """List tokens without their secrets."""
    tokens = request.services.tokens.list(request.identity, uid, page.and_one)
    return page_response(TokenRow, request.context, page.limit, tokens, token_row)


@write_route(post, "/token")
def make_token(request: ApiRequest, data: JSONBody[NewToken]) -> ItemResponse[IssuedToken]:
    """Create a token. Only this response contains its secret."""
    token, secret = request.services.tokens.create(
        request.identity, label=data.label, scopes=data.scopes, days=data.days, uid=data.uid
    )
    warnings = unknown_cluster_warnings(token.scopes, request.services.clusters)
    issued = issued_token(token, secret, warnings)
    return item_response(request.context, issued)


@write_route(delete, "/token/{token:int}", status_code=200)
def revoke_token(request: ApiRequest, token: Number) -> ItemResponse[TokenRow]:
    """Revoke a token, at once and on all servers."""
    revoked = request.services.tokens.revoke(request.identity, token)
    return item_response(request.context, token_row(revoked))
