"""Who asks: by the Unix socket, by a MUNGE credential or by a token; perhaps acting as another user, which is journalled.

The default is no: a route without `opt` wants somebody who signed in with the scope that its method needs.

    opt={"open": True}        anybody
    opt={"scope": "read"}     the scope it needs: read, write, report (write or an agent's), none; by default read for GET, else write
"""

from __future__ import annotations

import pwd
from collections.abc import MutableMapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

from litestar.concurrency import sync_to_thread

from fairbank.bank.wish import Asked, Note
from fairbank.core import ids
from fairbank.core.errors import Forbidden, Malformed, Unauthenticated, Unknown
from fairbank.core.time import Instant
from fairbank.rest.asking import JUDGED, SENT, Asking
from fairbank.rest.house import House
from fairbank.rest.sign_in import credentials
from fairbank.rest.sign_in.authorization import (
    BEARER,
    authorization,
    read_munge,
    read_token,
    scheme_of,
)
from fairbank.rest.sign_in.munge import Decoded
from fairbank.rest.sign_in.peers import Peer, peer_of
from fairbank.rest.workers import Workers
from fairbank.service.access.identity import FULL, Asker, asker_of
from fairbank.service.access.tokens import AGENT

Scope = MutableMapping[str, Any]

_GREETED = "fairbank.greeted"
"""Where the scope has what the head of a request told of who asks."""

AS_HEADER = "X-Fairbank-As"

_HOW = "use the bank's Unix socket, sign with MUNGE, or send Authorization: Bearer fbk_..."


class SignedIn(NamedTuple):
    """A user and what the credential allows, until when, and which token it was."""

    uid: int
    scopes: frozenset[str] = FULL
    until: Instant | None = None
    token: int | None = None


class Opened(NamedTuple):
    """A MUNGE credential that is good for the head of a request; whether it is for the body too is yet to be seen."""

    decoded: Decoded
    head: credentials.BoundRequest


class Doorkeeper:
    """Stands before every route: puts the asker into the request, or raises Unauthenticated or Forbidden.

    Not one of the framework's guards: it copies the whole handler for each guard of each request.
    """

    def __init__(self, house: House, workers: Workers) -> None:
        self._house, self._services, self._workers = house, house.services, workers
        self._without_roles = lru_cache(maxsize=1_024)(
            self._outsider
        )  # an agent asks a thousand times a second

    async def greet(self, scope: Scope) -> None:
        """Find out who asks as far as the head of a request tells, so that no body is read for whoever is nobody.

        Raises Unauthenticated, Malformed, Unreachable.
        """
        header = authorization(scope["headers"])
        munge = header is not None and scheme_of(header) == credentials.MUNGE
        scope[_GREETED] = await (
            self._opened(scope, read_munge(header or ""))
            if munge
            else self._by_socket_or_token(scope, header)
        )

    async def __call__(self, request: Asking) -> None:
        opt = request.route_handler.opt
        if (
            opt.get("open") or JUDGED in request.scope
        ):  # the express knew who asks when it handed the report in
            return
        signed_in = await self._signed_in(request)
        scope = opt.get("scope", "read" if request.method == "GET" else "write")
        demand_scope(signed_in.scopes, scope)
        named = one_header(cast("Scope", request.scope), AS_HEADER.lower().encode())
        if named is None:
            request.scope["user"] = await self._asker(signed_in, scope)
        else:
            method = f"a dry run of {request.method}" if request.dry_run else request.method
            request.scope["user"] = await sync_to_thread(
                self._acting, signed_in, named, method, request.scope["path"]
            )

    async def _signed_in(self, request: Asking) -> SignedIn:
        scope = cast("Scope", request.scope)
        found = scope.get(_GREETED)
        if isinstance(found, SignedIn):
            return found
        if isinstance(found, Opened):
            asked = found.head._replace(body_sha256=credentials.body_hash(await request.body()))
            return SignedIn(
                (await self._workers.munge.run(self._munge().settle, found.decoded, asked)).uid
            )
        header = authorization(scope["headers"])
        if header is None or scheme_of(header) == BEARER:
            return await self._by_socket_or_token(scope, header)
        asked = self._asked(scope, await request.body())
        return SignedIn(
            (await self._workers.munge.run(self._munge().admit, read_munge(header), asked)).uid
        )

    async def _by_socket_or_token(self, scope: Scope, header: str | None) -> SignedIn:
        if header is None:
            peer = peer_of(scope)
            if peer is None:
                raise Unauthenticated("nobody signed in", remedy=_HOW)
            return SignedIn(peer.uid)
        return await self._workers.tokens.run(self._by_token, read_token(header))

    def _by_token(self, secret: str) -> SignedIn:
        token = self._services.tokens.find(secret)
        return SignedIn(token.uid, frozenset(token.scopes), token.expires, token.id)

    def _munge(self) -> credentials.MungeDoor:
        if self._house.munge is None:
            raise Unauthenticated(
                "this server does not take MUNGE credentials",
                remedy="use its Unix socket or a token",
            )
        return self._house.munge

    def _asked(self, scope: Scope, body: bytes) -> credentials.BoundRequest:
        target = credentials.target_of(scope["raw_path"], scope["query_string"])
        named, key = (
            one_header(scope, AS_HEADER.lower().encode()),
            one_header(scope, b"idempotency-key"),
        )
        return credentials.BoundRequest.of(
            scope.get(SENT, scope["method"]),
            target,
            body,
            self._house.name,
            acting_as=named,
            key=key,
        )

    async def _opened(self, scope: Scope, credential: bytes) -> Opened:
        door, head = self._munge(), self._asked(scope, b"")
        return Opened(await self._workers.munge.run(door.open, credential, head), head)

    async def _asker(self, signed_in: SignedIn, scope: str) -> Asker:
        """Without a look at the books for those whose roles do not matter: superusers, and whoever reports runs."""
        staff = self._services.staff
        if scope == "report" or signed_in.uid in staff.superusers:
            return self._without_roles(signed_in)
        roles = await sync_to_thread(self._services.memberships.roles, signed_in.uid)
        return asker_of(
            signed_in.uid,
            staff,
            roles,
            scopes=signed_in.scopes,
            until=signed_in.until,
            token=signed_in.token,
        )

    def local(self, peer: Peer) -> Asker:
        """Who reports runs by the kernel's word."""
        return self._without_roles(SignedIn(peer.uid))

    def _outsider(self, signed_in: SignedIn) -> Asker:
        return asker_of(
            signed_in.uid,
            self._services.staff,
            {},
            scopes=signed_in.scopes,
            until=signed_in.until,
            token=signed_in.token,
        )

    def _acting(self, signed_in: SignedIn, named: str, method: str, path: str) -> Asker:
        """The asker who acts as another user, after the journal has it.

        An agent's scopes stay behind like all other rights. Raises Forbidden, Malformed, Unknown.
        """
        staff = self._services.staff
        if signed_in.uid not in staff.superusers | staff.admins:
            raise Forbidden(
                "only staff may act as another user", field=AS_HEADER, remedy="ask in your own name"
            )
        uid = uid_of(named)
        scopes = signed_in.scopes & FULL
        asker = asker_of(
            signed_in.uid,
            staff,
            self._services.memberships.roles(uid),
            acting_as=uid,
            scopes=scopes,
            until=signed_in.until,
        )
        if asker.acting_as is not None:
            note = Note(details=f"acted as user {uid}: {method} {path[:200]}")
            self._services.counter.apply(
                [Asked(note, self._services.clock.now(), asker.actor, asker.acting_as)]
            )
        return asker


def demand_scope(scopes: frozenset[str], scope: str) -> None:
    """Raises Forbidden unless a credential with `scopes` is good for a route that needs `scope`."""
    if scope == "none" or scope in scopes:
        return
    if scope == "report" and ("write" in scopes or any(each.startswith(AGENT) for each in scopes)):
        return
    needed = "write or agent:CLUSTER" if scope == "report" else scope
    raise Forbidden(
        f"this token lacks the scope {needed}",
        field="scopes",
        remedy="use another token, or sign in as yourself",
    )


def one_header(scope: Scope, name: bytes) -> str | None:
    """The value of a header that may be there once. Raises Malformed."""
    found = [value for each, value in scope["headers"] if each == name]
    if len(found) > 1:
        raise Malformed(
            f"the request has two {name.decode()} headers", field=name.decode(), remedy="send one"
        )
    return found[0].decode("latin-1") if found else None


def uid_of(named: str) -> int:
    """The uid that a number or a user name stands for. Raises Malformed, Unknown."""
    if named.isascii() and named.isdigit() and len(named) <= 10:
        return ids.uid(int(named), field=AS_HEADER)
    try:
        return pwd.getpwnam(ids.name(named, field=AS_HEADER)).pw_uid
    except KeyError as missing:
        raise Unknown(
            f"there is no user {named}",
            field=AS_HEADER,
            remedy="name a user of this system, or a uid",
        ) from missing
