"""Authentication of every request: by the Unix socket, by a MUNGE credential or by a token.

Staff may act as another user, which the journal records. A route without `opt` requires an
authenticated user with the scope of its method:

    opt={"open": True}        no authentication
    opt={"scope": "read"}     scope required: read, write, report (write or an agent's), none;
                              default: read for GET, else write
"""

from __future__ import annotations

import pwd
from collections.abc import Mapping, MutableMapping
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

from litestar.concurrency import sync_to_thread

from fairbank.bank.project import Role
from fairbank.bank.requests import AuditNote, SubmittedRequest
from fairbank.core import ids
from fairbank.core.errors import Forbidden, InvalidInput, NotFound, Unauthenticated
from fairbank.core.time import Instant
from fairbank.rest.auth.credentials import (
    BEARER,
    MUNGE,
    BoundRequest,
    MungeVerifier,
    authorization,
    body_hash,
    read_munge,
    read_token,
    scheme_of,
    target_of,
)
from fairbank.rest.auth.munge import Decoded
from fairbank.rest.auth.peers import peer_of
from fairbank.rest.context import AppContext
from fairbank.rest.request import SENT_METHOD, ApiRequest
from fairbank.rest.thread_pools import ThreadPools
from fairbank.service.access.identity import FULL, Identity, identity_of
from fairbank.service.access.tokens import AGENT

Scope = MutableMapping[str, Any]

_HEAD_RESULT = "fairbank.authenticated"
"""Key in the scope of the result of `authenticate_head`."""

AS_HEADER = "X-Fairbank-As"

_REMEDY = "use the bank's Unix socket, sign with MUNGE, or send Authorization: Bearer fbk_..."


class SignedIn(NamedTuple):
    """A user with the scopes and the end of validity of the credential, and the token if any."""

    uid: int
    scopes: frozenset[str] = FULL
    until: Instant | None = None
    token: int | None = None


class DecodedCredential(NamedTuple):
    """A MUNGE credential that matches the head of a request. Its body is not checked yet."""

    decoded: Decoded
    head: BoundRequest


class Authenticator:
    """Authenticates requests and puts the user into their scope.

    This is no guard of litestar, which copies the whole handler for each guard and request.
    """

    def __init__(self, context: AppContext, pools: ThreadPools) -> None:
        self._context, self._services, self._pools = context, context.services, pools
        # An agent sends a thousand requests a second.
        self._asker_without_roles = lru_cache(maxsize=1_024)(partial(self._new_asker, roles={}))

    async def authenticate_head(self, scope: Scope) -> None:
        """Authenticate by the head of a request, so that no body of an unknown user is read.

        Raises:
            Unauthenticated, InvalidInput: there is no credential, or it is invalid.
            Unavailable: munged or the database does not answer.
        """
        header = authorization(scope["headers"])
        if header is not None and scheme_of(header) == MUNGE:
            scope[_HEAD_RESULT] = await self._decode_for_head(scope, read_munge(header))
        else:
            scope[_HEAD_RESULT] = await self._by_socket_or_token(scope, header)

    async def __call__(self, request: ApiRequest) -> None:
        """Authenticate a request before its handler is called.

        Raises:
            Unauthenticated, InvalidInput: there is no credential, or it is invalid.
            Forbidden: the credential lacks the scope, or the user must not act as another one.
            Unavailable: munged or the database does not answer.
        """
        opt = request.route_handler.opt
        if opt.get("open"):
            return
        signed_in = await self._signed_in(request)
        scope = opt.get("scope", "read" if request.method == "GET" else "write")
        demand_scope(signed_in.scopes, scope)
        acting_as = single_header(cast("Scope", request.scope), AS_HEADER.lower().encode())
        if acting_as is None:
            request.scope["user"] = await self._asker(signed_in, scope)
        else:
            method = f"a dry run of {request.method}" if request.dry_run else request.method
            request.scope["user"] = await sync_to_thread(
                self._asker_acting_as, signed_in, acting_as, method, request.scope["path"]
            )

    async def _signed_in(self, request: ApiRequest) -> SignedIn:
        scope = cast("Scope", request.scope)
        result = scope.get(_HEAD_RESULT)
        if isinstance(result, SignedIn):
            return result
        run_munge = self._pools.munge.run
        if isinstance(result, DecodedCredential):
            bound = result.head._replace(body_sha256=body_hash(await request.body()))
            decoded = await run_munge(self._verifier().accept, result.decoded, bound)
            return SignedIn(decoded.uid)
        header = authorization(scope["headers"])
        if header is None or scheme_of(header) == BEARER:
            return await self._by_socket_or_token(scope, header)
        bound = self._bound_request(scope, await request.body())
        decoded = await run_munge(self._verifier().verify, read_munge(header), bound)
        return SignedIn(decoded.uid)

    async def _by_socket_or_token(self, scope: Scope, header: str | None) -> SignedIn:
        if header is not None:
            return await self._pools.tokens.run(self._by_token, read_token(header))
        peer = peer_of(scope)
        if peer is None:
            raise Unauthenticated("the request is not authenticated", remedy=_REMEDY)
        return SignedIn(peer.uid)

    def _by_token(self, secret: str) -> SignedIn:
        token = self._services.tokens.find(secret)
        return SignedIn(token.uid, frozenset(token.scopes), token.expires, token.id)

    async def _decode_for_head(self, scope: Scope, credential: bytes) -> DecodedCredential:
        verifier, head = self._verifier(), self._bound_request(scope, b"")
        decoded = await self._pools.munge.run(verifier.decode_for_head, credential, head)
        return DecodedCredential(decoded, head)

    def _verifier(self) -> MungeVerifier:
        if self._context.munge is None:
            raise Unauthenticated(
                "this server does not accept MUNGE credentials",
                remedy="use its Unix socket or a token",
            )
        return self._context.munge

    def _bound_request(self, scope: Scope, body: bytes) -> BoundRequest:
        return BoundRequest.of(
            scope.get(SENT_METHOD, scope["method"]),
            target_of(scope["raw_path"], scope["query_string"]),
            body,
            self._context.name,
            acting_as=single_header(scope, AS_HEADER.lower().encode()),
            key=single_header(scope, b"idempotency-key"),
        )

    async def _asker(self, signed_in: SignedIn, scope: str) -> Identity:
        """Return the user with permissions. The roles of superusers, and of agents that report
        runs, do not matter and are not looked up.
        """
        if scope == "report" or signed_in.uid in self._services.staff.superusers:
            return self._asker_without_roles(signed_in)
        roles = await sync_to_thread(self._services.memberships.roles, signed_in.uid)
        return self._new_asker(signed_in, roles=roles)

    def _new_asker(self, signed_in: SignedIn, *, roles: Mapping[int, Role]) -> Identity:
        return identity_of(
            signed_in.uid,
            self._services.staff,
            roles,
            scopes=signed_in.scopes,
            until=signed_in.until,
            token=signed_in.token,
        )

    def _asker_acting_as(
        self, signed_in: SignedIn, acting_as: str, method: str, path: str
    ) -> Identity:
        """Return the user who acts as another one, after the journal recorded it.

        The scopes of an agent do not apply, like all other permissions of the user. The journal
        keeps the note even if the request then fails.
        """
        staff = self._services.staff
        # Checked first, so that other users do not learn which names exist.
        if signed_in.uid not in staff.superusers | staff.admins:
            raise Forbidden(
                "only staff may act as another user",
                field=AS_HEADER,
                remedy="send the request as yourself",
            )
        uid = parse_user(acting_as)
        identity = identity_of(
            signed_in.uid,
            staff,
            self._services.memberships.roles(uid),
            acting_as=uid,
            scopes=signed_in.scopes & FULL,
            until=signed_in.until,
        )
        if identity.acting_as is not None:
            note = AuditNote(details=f"acted as user {uid}: {method} {path[:200]}")
            self._services.write_queue.apply(
                [
                    SubmittedRequest(
                        note, self._services.clock.now(), identity.actor, identity.acting_as
                    )
                ]
            )
        return identity


def demand_scope(scopes: frozenset[str], scope: str) -> None:
    """Raise Forbidden unless a credential with `scopes` is valid for a route that requires
    `scope`.
    """
    if scope == "none" or scope in scopes:
        return
    if scope == "report" and ("write" in scopes or any(name.startswith(AGENT) for name in scopes)):
        return
    required = "write or agent:CLUSTER" if scope == "report" else scope
    raise Forbidden(
        f"this token lacks the scope {required}",
        field="scopes",
        remedy="use another token, or sign in as yourself",
    )


def single_header(scope: Scope, name: bytes) -> str | None:
    """Return the value of a header, None if it is missing; raise InvalidInput if it is repeated."""
    values = [value for header, value in scope["headers"] if header == name]
    if len(values) > 1:
        raise InvalidInput(
            f"the request has two {name.decode()} headers", field=name.decode(), remedy="send one"
        )
    return values[0].decode("latin-1") if values else None


def parse_user(text: str) -> int:
    """Return the uid for a uid or a login name of X-Fairbank-As.

    Raises:
        InvalidInput: it is neither.
        NotFound: the system has no such user.
    """
    if text.isascii() and text.isdigit() and len(text) <= 10:
        return ids.uid(int(text), field=AS_HEADER)
    if not ids.is_name(text):
        raise InvalidInput(
            f"{text[:64]!r} is not a user", field=AS_HEADER, remedy="write a login name or a uid"
        )
    try:
        return pwd.getpwnam(text).pw_uid
    except KeyError as missing:
        raise NotFound(
            f"there is no user {text}",
            field=AS_HEADER,
            remedy="name a user of this system, or a uid",
        ) from missing
