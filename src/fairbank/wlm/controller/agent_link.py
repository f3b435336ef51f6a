"""Link to the bank's agent: the controller asks it as the plug-in of slurmctld does.

The core keeps each message until it is answered. On each new connection all are sent again, so that
the agent gets everything at least once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, cast

from fairbank.agent.protocol import (
    VERSION,
    Action,
    EpilogEvent,
    FromAgent,
    Greeting,
    LimitEvent,
    PrologRequest,
    Verdict,
    Welcome,
    split_frames,
)
from fairbank.core.errors import InvalidInput
from fairbank.wlm.controller.plugin_codec import (
    AGENT_BODY_MAX,
    decode_agent_message,
    encode_plugin_message,
)
from fairbank.wlm.core.effects import AgentMessage
from fairbank.wlm.core.events import AgentConnected, CoreEvent, MessageAcknowledged, VerdictGiven
from fairbank.wlm.core.factors.usage import run_billing
from fairbank.wlm.core.starts import NO_ANSWER
from fairbank.wlm.core.state import CoreState

PROLOG_TIMEOUT_SECONDS = 30
"""Seconds for which a run waits for its verdict, as with the plug-in."""
_PAUSE = 1.0  # seconds between two attempts to connect, and between two searches for late verdicts
_COMMENT = "Fairbank: "  # as plugins/prep begins a comment; the agent releases only such jobs
_NO_ANSWER_TEXT = f"{_COMMENT}the bank's agent does not answer; the job is released when it does"

_log = logging.getLogger(__name__)


def plugin_message(
    message: AgentMessage, state: CoreState
) -> PrologRequest | LimitEvent | EpilogEvent:
    """Return a message of the core in the form of the plug-in.

    `tres` and `billing` are computed from what the run has, as slurmctld does.
    """
    run, request, submission = message.run, message.request, message.submission
    counts = {**request.tres, **run.allocation.tres}
    billed = run_billing(state, run.allocation)
    tres = {**counts, "billing": int(billed)}
    begun = run.started or run.allocated
    common: dict[str, Any] = {
        "number": message.number,
        "run": run.run,
        "uid": submission.uid,
        "gid": submission.gid,
        "account": request.account,
        "partition": run.allocation.partition,
        "qos": request.qos or None,
        "tres": ",".join(f"{name}={_amount(name, count)}" for name, count in tres.items()),
        "name": submission.name,
        "billing": billed,
        "limit_seconds": request.limit,
        "start": begun.wall,
        "batch": bool(submission.script),
        "suspended_seconds": run.paused if run.ended is None else run.paused_until(run.ended),
        "array": None if request.array is None else (request.array, max(request.task, 0)),
    }
    if message.kind == "prolog":
        return PrologRequest(**common)
    if message.kind == "limit" or run.ended is None:
        return LimitEvent(**common)
    return EpilogEvent(
        **common,
        end=run.ended.wall,
        elapsed_seconds=run.elapsed,
        state=run.end,
        exit_status=run.status,
        begun=run.started is not None,
    )


def _amount(name: str, count: int) -> str:
    return f"{count}M" if name == "mem" else str(count)


class AgentLink(asyncio.Protocol):
    """Connection to the agent, which is made again whenever it is lost.

    Invariants: `_transport` is None until the agent has answered the greeting. `_begins` has when
    each question without a verdict was sent first, by number; without an agent, when it would have
    been.
    """

    def __init__(
        self,
        path: str,
        *,
        state: Callable[[], CoreState],
        stored: Callable[[], Mapping[int, AgentMessage]],
        handle: Callable[[CoreEvent], object],
        now: Callable[[], int],
        holds_without_agent: bool,
    ) -> None:
        """Make a link that is not connected; `run` connects it.

        `stored` returns those messages in the state that are stored, and `now` monotonic seconds.
        `holds_without_agent`: jobs without an answer are held until there is one; else they run.
        """
        self._stored = stored
        self._path, self._state, self._handle, self._now = path, state, handle, now
        self._action: Action = "hold" if holds_without_agent else "run"
        self._begins: dict[int, int] = {}
        self._rest = b""
        self._opened: asyncio.WriteTransport | None = None
        self._transport: asyncio.WriteTransport | None = None

    @property
    def is_connected(self) -> bool:
        return self._transport is not None

    async def run(self) -> None:
        """Keep the connection, and decide where no answer comes, until this task is cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                if self._opened is None:
                    try:
                        await loop.create_unix_connection(lambda: self, self._path)
                    except OSError as error:
                        _log.debug("no agent at %s: %s", self._path, error)
                self._decide_late_ones()
                await asyncio.sleep(_PAUSE)
        finally:
            if self._opened is not None:
                self._opened.abort()

    def send(self, message: AgentMessage) -> None:
        """Send a stored message; without an agent it waits in the state of the core."""
        if message.kind == "prolog":
            self._begins.setdefault(message.number, self._now())
        if self._transport is not None:
            self._transport.write(encode_plugin_message(plugin_message(message, self._state())))

    def _decide_late_ones(self) -> None:
        """Decide about runs whose verdict is late. A long commit delays the question itself."""
        for number, begin in list(self._begins.items()):
            message = self._state().messages.get(number)
            if message is not None and self._now() - begin < PROLOG_TIMEOUT_SECONDS:
                continue
            del self._begins[number]
            if message is not None:
                self._handle(
                    VerdictGiven(number, message.run.run, self._action, NO_ANSWER, _NO_ANSWER_TEXT)
                )

    # ------------------------------------------------------------------ called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._opened = cast("asyncio.WriteTransport", transport)
        self._rest = b""
        cluster = self._state().settings.cluster.cluster_name
        # The agent takes any version of Slurm; it is shown in its log.
        greeting = Greeting(version=VERSION, slurm="fairbank", cluster=cluster)
        self._opened.write(encode_plugin_message(greeting))

    def data_received(self, data: bytes) -> None:
        try:
            bodies, self._rest = split_frames(self._rest + data, max_body=AGENT_BODY_MAX)
            answers = [decode_agent_message(body) for body in bodies]
        except InvalidInput as error:
            _log.warning("the agent sent %s; closed the connection", error.message)
            if self._opened is not None:
                self._opened.abort()
            return
        for answer in answers:
            self._take(answer)

    def _take(self, answer: FromAgent) -> None:
        if isinstance(answer, Welcome):
            _log.info("the agent is connected")
            self._transport = self._opened
            for _, message in sorted(self._stored().items()):
                self.send(message)
            self._handle(AgentConnected())
            return
        question = self._state().messages.get(answer.number)
        if question is None:  # answered already
            return
        if isinstance(answer, Verdict):
            run, text = question.run.run, answer.text and f"{_COMMENT}{answer.text}"
            self._handle(VerdictGiven(answer.number, run, answer.action, answer.reason, text))
        else:
            self._handle(MessageAcknowledged(answer.number))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            _log.warning("the connection to the agent is lost")
        self._opened = self._transport = None
