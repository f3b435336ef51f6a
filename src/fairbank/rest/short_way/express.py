"""The express: one report over the Unix socket, from the parser to the counter and back without a task.

Agents ask this thousands of times a second, and what an application costs for each request, the event loop's task first of all, is
more than to read, judge and answer a report. So whatever is plain (a head of a few known headers, a body that came with it, somebody
the kernel vouches for, a known account) is handed to the counter straight away, and what was granted is answered in one write.

All else takes the long way, which has a word for everything. What is handed in already is not asked again there, nor by whom: a
request that was refused, or that waits for LONG_SECONDS, goes on there in its place and with its time, with what the counter says of it
(`JUDGED`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from fairbank.bank.ledger import Done
from fairbank.bank.wish import Asked
from fairbank.core.errors import Busy
from fairbank.rest.answering import ALWAYS, UNLESS_SAID, reply
from fairbank.rest.asking import JUDGED, Judged, is_json
from fairbank.rest.asking.reading import read_json
from fairbank.rest.asking.reports import report_of
from fairbank.rest.bodies.requests import AnyReport
from fairbank.rest.house import House
from fairbank.rest.short_way.lane import plain
from fairbank.rest.sign_in.peers import Peer, peer_of
from fairbank.rest.teller import Teller, Waiting, settle
from fairbank.service.access.identity import Asker
from fairbank.service.write_queue.queue import BatchResult

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

PATH = "/job"
LONG_SECONDS = 1.0

_HEADERS = frozenset(
    {
        b"host",
        b"content-type",
        b"content-length",
        b"user-agent",
        b"accept",
        b"accept-encoding",
        b"connection",
    }
)
_STATUS = {200: b"HTTP/1.1 200 OK\r\n", 201: b"HTTP/1.1 201 Created\r\n"}
_encode = msgspec.json.Encoder().encode


def _nothing() -> None:
    """What is left to do once an answer is complete."""


class Gate(Protocol):
    """As much of the front as the express needs: a place in the crowd, and the account of what was answered."""

    def enter(self, who: Hashable) -> bool: ...
    def leave(self, who: Hashable) -> None: ...
    def tell(self, method: str, scope: Any, status: int, seconds: float) -> None: ...


class Express:
    """Reports over the Unix socket. `peer_as` tells who somebody is by the kernel's word; `teller` is there once the server runs."""

    def __init__(
        self,
        house: House,
        gate: Gate,
        peer_as: Callable[[Peer], Asker],
        teller: Callable[[], Teller],
    ) -> None:
        self.house, self.gate, self.peer_as = house, gate, peer_as
        self._teller = teller
        self._waiting: dict[_Journey, None] = {}  # the first to come stands first
        self._timer: asyncio.TimerHandle | None = None
        self._dated: object = None
        self._head = b""

    @staticmethod
    def takes(scope: Any) -> bool:
        """Whether the head of a request is that of a plain report."""
        return (
            scope["path"] == PATH
            and scope["method"] == "POST"
            and peer_of(scope) is not None
            and plain(scope)
            and is_json(scope["headers"])
            and all(name in _HEADERS for name, _ in scope["headers"])
        )

    def begin(self, cycle: RequestResponseCycle, long_way: Callable[[], None]) -> bool:
        """Hand in a request that `takes` and whose body is there. False when it has to take the long way from its beginning."""
        if cycle.flow.write_paused:  # answers pile up at somebody who does not read them
            return False
        peer = cast("Peer", peer_of(cycle.scope))
        asked = self._wish(peer, bytes(cycle.body))
        if asked is None or not self.gate.enter(peer.uid):
            return False
        journey = _Journey(self, cycle, peer, long_way)
        try:
            self._teller().submit([asked], journey.judged)
        except Busy:
            self.gate.leave(peer.uid)
            return False
        self._waiting[journey] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LONG_SECONDS, self._look)
        return True

    def _wish(self, peer: Peer, body: bytes) -> Asked | None:
        """What is asked; None where there is anything to it that wants a word, or a look at the books."""
        try:
            report = report_of(read_json(body, AnyReport))
            if not self.house.services.reports.can_prepare_now([report]):
                return None
            prepared = self.house.services.reports.requests(self.peer_as(peer), [report])[0]
        except Exception:  # noqa: BLE001 (it comes again on the long way, where each kind has its answer)
            return None
        return prepared if isinstance(prepared, Asked) else None

    def done(self, journey: _Journey) -> None:
        """It waits no longer."""
        self._waiting.pop(journey, None)

    def _look(self) -> None:
        """Let those who have been waiting too long wait on the long way, where somebody looks after them."""
        self._timer = None
        while self._waiting:
            oldest = next(iter(self._waiting))
            left = oldest.begun + LONG_SECONDS - time.perf_counter()
            if left > 0:
                self._timer = asyncio.get_running_loop().call_later(left, self._look)
                return
            oldest.go_on()

    def head(self, cycle: RequestResponseCycle) -> bytes:
        """The headers that every answer has; uvicorn makes those of its own anew each second."""
        if self._dated is not cycle.default_headers:
            self._dated = cycle.default_headers
            headers = (
                *cycle.default_headers,
                (b"content-type", b"application/json"),
                *ALWAYS,
                *UNLESS_SAID,
            )
            self._head = b"".join([b"%b: %b\r\n" % each for each in headers])
        return self._head


class _Journey:
    """One report that is handed in."""

    def __init__(
        self,
        express: Express,
        cycle: RequestResponseCycle,
        peer: Peer,
        long_way: Callable[[], None],
    ) -> None:
        self._express, self._cycle, self._peer, self._long_way = express, cycle, peer, long_way
        self._went_on: Waiting | None = None
        self.begun = time.perf_counter()

    def judged(self, came: BatchResult) -> None:
        """The counter's word, in the event loop."""
        if self._went_on is None and isinstance(came, list) and isinstance(came[0], Done):
            self._express.done(self)
            self._answer(came[0])
            return
        settle(self._went_on or self.go_on(), came)

    def go_on(self) -> Waiting:
        """Take the long way from here; the front takes our place in the crowd over, and gives it back."""
        self._express.done(self)
        self._went_on = asyncio.get_running_loop().create_future()
        scope: Any = self._cycle.scope
        scope["user"] = self._express.peer_as(self._peer)
        scope[JUDGED] = Judged(self._went_on, self.begun, self._peer.uid, bytes(self._cycle.body))
        self._long_way()
        return self._went_on

    def _answer(self, done: Done) -> None:
        express, cycle = self._express, self._cycle
        express.gate.leave(self._peer.uid)
        content, status = reply(done, express.house.services.clock)
        if not cycle.disconnected:
            body = _encode(content)
            end = b"" if cycle.keep_alive else b"connection: close\r\n"
            cycle.transport.write(
                b"%b%bcontent-length: %d\r\n%b\r\n%b"
                % (_STATUS[status], express.head(cycle), len(body), end, body)
            )
            cycle.response_started = cycle.response_complete = True
            if not cycle.keep_alive:
                cycle.transport.close()
            cycle.on_response()
            cycle.on_response = _nothing  # or the last of a connection would keep it, until somebody looks for cycles
        scope: Any = cycle.scope
        scope["path_template"], scope["user"] = PATH, express.peer_as(self._peer)
        express.gate.tell("POST", scope, status, time.perf_counter() - self.begun)
