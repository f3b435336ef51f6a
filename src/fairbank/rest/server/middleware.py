"""ASGI middleware before all routes: limits, a timeout, security headers, metrics and the log."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from functools import partial
from typing import Any

from fairbank.core.errors import Busy, FairbankError, Unavailable
from fairbank.rest.auth.peers import peer_of
from fairbank.rest.metrics import ServerMetrics
from fairbank.rest.problems import PROBLEM_JSON, headers_of, problem_of_error, problem_of_failure
from fairbank.rest.request import SENT_METHOD
from fairbank.rest.responses import send_json
from fairbank.rest.schemas.answers import Problem
from fairbank.rest.server.limits import (
    BufferedBody,
    FairLimit,
    Message,
    Receive,
    client_of,
    has_body,
)

Scope = Message
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Any, Any, Any], Awaitable[None]]
Work = Callable[[], Awaitable[None]]
AuthenticateHead = Callable[[Scope], Awaitable[None]]

REQUESTS_MAX = 1_000
BODIES_MAX = 256 * 1024 * 1024  # bytes of all bodies together, from the first byte to the response
TIMEOUT_SECONDS = 60.0

HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Headers of every response."""
DEFAULT_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)
"""Headers of responses that do not set them."""

_HEALTH = "/health"
_QUIET_ROUTES = frozenset({"/job", "/job/bulk", _HEALTH})
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"})

_log = logging.getLogger("fairbank.request")


class Middleware:
    """ASGI application around the routes."""

    def __init__(
        self,
        app: Asgi,
        metrics: ServerMetrics,
        *,
        authenticate_head: AuthenticateHead | None = None,
        requests_max: int = REQUESTS_MAX,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        """Wrap an application.

        Args:
            authenticate_head: called before a body is read; raises FairbankError to refuse it.
            requests_max: requests in work at the same time; beyond it the answer is 503.
            timeout_seconds: for each request, after its body has arrived.
        """
        self._app, self._metrics, self._authenticate_head = app, metrics, authenticate_head
        self._timeout_seconds = timeout_seconds
        self._requests, self._bodies = FairLimit(requests_max), FairLimit(BODIES_MAX)
        metrics.in_progress.set_function(lambda: self._requests.used)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        method = scope["method"]
        if method == "HEAD":
            scope = {**scope, "method": "GET", SENT_METHOD: method}
        response = _Response(send, without_body=method == "HEAD")
        run = self._run_with_body if has_body(scope) else self._run
        try:
            await run(scope, receive, response, client_of(scope))
        except FairbankError as error:  # of the limits here: the routes answer for their own
            await response.send_problem(problem_of_error(error), headers_of(error))
        except Exception as error:  # noqa: BLE001  no request may end the server
            await response.send_problem(problem_of_failure(f"{method} {_route_of(scope)}", error))
        self._record(method, scope, response.status, time.perf_counter() - start)

    async def _run_with_body(
        self, scope: Scope, receive: Receive, response: _Response, client: Hashable
    ) -> None:
        """Authenticate, read the body, run. While the body arrives the request takes no place."""
        if self._authenticate_head is not None and not _is_local(scope):
            try:
                await self._in_place(partial(self._authenticate_head, scope), client)
            except FairbankError as error:  # no body of an unknown user is read
                headers = {**headers_of(error), "Connection": "close"}
                await response.send_problem(problem_of_error(error), headers)
                return
        body = BufferedBody(receive, self._bodies, client)
        try:
            if not await body.read():
                raise Busy("the memory for request bodies is full, or your share of it")
            await self._run(scope, body, response, client)
        finally:
            body.release()

    async def _run(
        self, scope: Scope, receive: Receive, response: _Response, client: Hashable
    ) -> None:
        work = partial(self._app, scope, receive, response)
        if scope["path"] == _HEALTH:  # cheap, and a full server must not look dead
            await self._in_time(work)
        else:
            await self._in_place(work, client)

    async def _in_place(self, work: Work, client: Hashable) -> None:
        """Do `work` in one of the client's places; raise Busy if it has none left."""
        if not self._requests.acquire(client):
            raise Busy("too many requests are in work, or too many of yours")
        try:
            await self._in_time(work)
        finally:
            self._requests.release(client)

    async def _in_time(self, work: Work) -> None:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await work()
        except TimeoutError as error:
            raise Unavailable(
                "the request took too long; whether it was carried out is not known",
                remedy="send it again with the same key: what was carried out is not repeated",
            ) from error

    def _record(self, method: str, scope: Scope, status: int, seconds: float) -> None:
        """Count a request in the metrics and log it."""
        route = _route_of(scope)
        self._metrics.count_request(
            method if method in _METHODS else "other", route, status, seconds
        )
        # Reports are in the journal, and a busy cluster sends thousands a second.
        is_quiet = route in _QUIET_ROUTES and status < 400
        level = logging.DEBUG if is_quiet else logging.INFO
        if _log.isEnabledFor(level):
            identity = scope.get("user")
            facts = {
                "method": method,
                "path": scope["path"][:200],
                "status": status,
                "ms": round(seconds * 1_000, 1),
            }
            if identity is not None:
                facts["uid"] = identity.actor
                if identity.acting_as is not None:
                    facts["acting_as"] = identity.acting_as
            _log.log(level, "request", extra={"facts": facts})


def _route_of(scope: Scope) -> str:
    """Return the template of the path, so that no client can create labels of metrics."""
    return str(scope.get("path_template", "unknown"))


def _is_local(scope: Scope) -> bool:
    """Return True if the kernel alone identifies the user, as with the agents' reports."""
    return peer_of(scope) is not None and all(
        name != b"authorization" for name, _ in scope["headers"]
    )


class _Response:
    """ASGI `send` that keeps the status, adds headers and drops the body of a HEAD response.

    JSON ends with a line end, so that the prompt after `curl` stands on a line of its own.
    """

    def __init__(self, send: Send, *, without_body: bool) -> None:
        self._send, self._without_body = send, without_body
        self.status, self._ends_line = 0, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = {name.lower(): value for name, value in message["headers"]}
            length = int(headers.get(b"content-length", b"0"))
            self._ends_line = length > 0 and b"json" in headers.get(b"content-type", b"")
            if self._ends_line:
                headers[b"content-length"] = b"%d" % (length + 1)
            message["headers"] = [*{**dict(DEFAULT_HEADERS), **headers}.items(), *HEADERS]
        elif self._without_body:
            message = {**message, "body": b""}
        elif self._ends_line and not message.get("more_body"):
            message = {**message, "body": message["body"] + b"\n"}
        await self._send(message)

    async def send_problem(
        self, problem: Problem, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a problem, unless a response has begun."""
        if not self.status:
            await send_json(self, problem.status, problem, PROBLEM_JSON, headers)
