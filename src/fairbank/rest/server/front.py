"""The front of the server, before any route: a bounded crowd, a longest wait, headers for browsers, a line in the log for each request."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any

import msgspec

from fairbank.core.errors import FairbankError
from fairbank.rest.answering import ALWAYS, UNLESS_SAID
from fairbank.rest.asking import JUDGED, SENT, Judged
from fairbank.rest.bodies.answers import Problem
from fairbank.rest.metrics import Metrics
from fairbank.rest.problems import PROBLEM_JSON, headers_of, problem_of_trouble
from fairbank.rest.server.arriving import Arrival, Message, Receive, announced, whose
from fairbank.rest.server.overdue import Overdue
from fairbank.rest.server.portions import Portions
from fairbank.rest.sign_in.peers import peer_of

Scope = Message
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Any, Any, Any], Awaitable[None]]
Greeting = Callable[[Scope], Awaitable[None]]

CROWD_MAX = 1_000
BODIES_MAX = 256 * 1024 * 1024  # bytes of all bodies together, from the first byte until the answer
PATIENCE_SECONDS = 60.0

_log = logging.getLogger("fairbank.request")

_NO_HEADERS: Mapping[str, str] = {}
_FULL = Problem(
    type="/problem/busy",
    title="busy",
    status=503,
    detail="too many requests are being worked on, or too many of yours",
    remedy="try again in 1 s; the request was not carried out",
)
_LATE = Problem(
    type="/problem/unavailable",
    title="unavailable",
    status=503,
    detail="no answer was found in time; whether the request was carried out is not known",
    remedy="send it again under the same key: what was carried out is not carried out twice",
)
_BROKEN = Problem(
    type="/problem/failure",
    title="failure",
    status=500,
    detail="something is wrong with the server",
    remedy="its log tells more",
)


class Front:
    """An ASGI application around another one."""

    def __init__(
        self,
        app: Asgi,
        metrics: Metrics,
        *,
        greet: Greeting | None = None,
        crowd_max: int = CROWD_MAX,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """`greet` looks at the head of a request whose body is still to be read. It raises FairbankError where nobody asks: then no body is."""
        self._app, self._metrics, self._greet = app, metrics, greet
        self._overdue = Overdue(patience_seconds)
        self._crowd, self._bodies = Portions(crowd_max), Portions(BODIES_MAX)
        metrics.in_progress.set_function(lambda: self._crowd.taken)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        method = scope["method"]
        if method == "HEAD":
            scope = {**scope, "method": "GET", SENT: method}
        answer = _Answer(send, bodiless=method == "HEAD")
        if (judged := scope.get(JUDGED)) is not None:
            begun = judged.begun
            await self._handed_in(scope, judged, answer)
        elif announced(scope):
            await self._once_whole(scope, receive, answer)
        else:
            await self._in_turn(scope, receive, answer, whose(scope))
        self.tell(method, scope, answer.status, time.perf_counter() - begun)

    async def _handed_in(self, scope: Scope, judged: Judged, answer: _Answer) -> None:
        """It has its place since it was handed in, and keeps it until it is answered."""
        try:
            await self._bounded(self._app(scope, judged.receive, answer), answer)
        finally:
            self.leave(judged.who)

    async def _once_whole(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        """A body takes as long as its sender likes, within the protocol's bounds: nobody's place is taken meanwhile."""
        who = whose(scope)
        if not await self._greeted(scope, answer, who):
            return
        arrival = Arrival(receive, self._bodies, who)
        try:
            if await arrival.whole():
                await self._in_turn(scope, arrival, answer, who)
            else:
                await answer.problem(_FULL, retry_after_seconds=1)
        finally:
            arrival.forget()

    async def _greeted(self, scope: Scope, answer: _Answer, who: Hashable) -> bool:
        """Whether it is somebody whose body is to be read; else they are told, and the rest of what they send is not read."""
        if self._greet is None or _is_sure(scope):
            return True
        if not self.enter(who):
            await answer.problem(_FULL, retry_after_seconds=1)
            return False
        try:
            await self._bounded(self._greet(scope), answer)
        finally:
            self.leave(who)
        return not answer.status

    async def _in_turn(
        self, scope: Scope, receive: Receive, answer: _Answer, who: Hashable
    ) -> None:
        if (
            scope["path"] == _ALIVE
        ):  # costs nothing, and whoever watches the server must not take it for dead
            await self._bounded(self._app(scope, receive, answer), answer)
        elif not self.enter(who):
            await answer.problem(_FULL, retry_after_seconds=1)
        else:
            try:
                await self._bounded(self._app(scope, receive, answer), answer)
            finally:
                self.leave(who)

    async def _bounded(self, work: Awaitable[None], answer: _Answer) -> None:
        """Wait for `work`, but not for ever; where it comes to nothing, that is the answer, if none was begun."""
        try:
            await self._overdue.bound(work)
        except TimeoutError:
            await answer.problem(_LATE, retry_after_seconds=5)
        except (
            FairbankError
        ) as trouble:  # only who greets raises it: the application has words of its own for each
            await answer.problem(
                problem_of_trouble(trouble), headers={**headers_of(trouble), "Connection": "close"}
            )
        except Exception:  # noqa: BLE001 (told in the log; nothing behind the front may end the server)
            _log.exception("a request broke off")
            await answer.problem(_BROKEN)

    def enter(self, who: Hashable) -> bool:
        """Whether `who` gets a place among those who are worked on; whoever has it leaves in the end."""
        return self._crowd.take(who)

    def leave(self, who: Hashable) -> None:
        self._crowd.give_back(who)

    def tell(self, method: str, scope: Scope, status: int, seconds: float) -> None:
        """Count a request that was answered, and have it in the log."""
        route = scope.get("path_template", "unknown")
        self._metrics.answered(method if method in _METHODS else "other", route, status, seconds)
        # What clusters report is in the journal, and a busy one reports thousands a second.
        level = logging.DEBUG if route in _QUIET and status < _WRONG else logging.INFO
        if _log.isEnabledFor(level):
            asker = scope.get("user")
            facts = {
                "method": method,
                "path": scope["path"][:200],
                "status": status,
                "ms": round(seconds * 1_000, 1),
            }
            if asker is not None:
                facts |= (
                    {"uid": asker.actor}
                    if asker.acting_as is None
                    else {"uid": asker.actor, "acting_as": asker.acting_as}
                )
            _log.log(level, "request", extra={"facts": facts})


def _is_sure(scope: Scope) -> bool:
    """Whether the kernel's word is all that there is to who asks, as with the agents' reports."""
    return peer_of(scope) is not None and all(
        name != b"authorization" for name, _ in scope["headers"]
    )


_ALIVE = "/health"
_QUIET = frozenset({"/job", "/job/bulk", _ALIVE})
_WRONG = 400
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"})


class _Answer:
    """What is sent back: remembers the status, adds the headers that every answer has, and keeps the body back from HEAD."""

    def __init__(self, send: Send, *, bodiless: bool = False) -> None:
        self._send, self._bodiless = send, bodiless
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message["headers"]
            said = {name.lower() for name, _ in headers}
            message["headers"] = [
                *headers,
                *ALWAYS,
                *(each for each in UNLESS_SAID if each[0] not in said),
            ]
        elif self._bodiless:
            message = {**message, "body": b""}
        await self._send(message)

    async def problem(
        self,
        problem: Problem,
        *,
        retry_after_seconds: int | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> None:
        """Say so, if nothing was said yet."""
        if self.status:
            return
        body = msgspec.json.encode(problem)
        told = [(b"content-type", PROBLEM_JSON.encode()), (b"content-length", b"%d" % len(body))]
        told += [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        if retry_after_seconds is not None:
            told.append((b"retry-after", b"%d" % retry_after_seconds))
        await self({"type": "http.response.start", "status": problem.status, "headers": told})
        await self({"type": "http.response.body", "body": body})
