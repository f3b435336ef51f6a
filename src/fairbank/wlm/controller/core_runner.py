"""Runner of the core: events in, effects carried out in order, after what they rest on is stored.

All methods run in the event loop. The events of the time that a commit takes share the next one.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from fairbank.cluster.job import Run
from fairbank.core.errors import FairbankError, Unavailable
from fairbank.scheduling.machines.node_snapshot import OnNodes
from fairbank.wlm.controller.clock import ControllerClock, Timers
from fairbank.wlm.controller.planner import Planner
from fairbank.wlm.controller.state_store import (
    AccountedRun,
    CommitData,
    RunFilter,
    StateStore,
    digest,
)
from fairbank.wlm.controller.totals import Totals
from fairbank.wlm.core.controller import Core
from fairbank.wlm.core.effects import (
    AgentMessage,
    CoreEffect,
    LogLine,
    Message,
    Reply,
    RequestPlan,
    Send,
    SetTimer,
    StoredRow,
    StoreRows,
)
from fairbank.wlm.core.events import (
    Caller,
    CoreEvent,
    RequestBody,
    RequestMade,
    SubmitJob,
    TimerKind,
)
from fairbank.wlm.core.job_states import BEGUN
from fairbank.wlm.core.jobs import Moment, WlmJob
from fairbank.wlm.core.requests.known_names import unknown
from fairbank.wlm.core.settings import WlmSettings
from fairbank.wlm.core.snapshot import pass_snapshot
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.core.steps.step import EndedStep
from fairbank.wlm.protocol.messages import RunOutcome

RETRY_SECONDS = 1.0
"""Pause between two attempts to commit."""
CONTENT_SECONDS = 3_600
"""Age at which a script that no job uses is deleted, and the pause between two such deletions."""
FAILED_STATUS = 1 << 8
"""Wait status of a job that did not complete and has none of its own: exit code 1."""

_log = logging.getLogger(__name__)
_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

RunnerEffect = CoreEffect | Callable[[], None]
"""Effect of the core, or a function that is called when the effects before it are carried out."""

T = TypeVar("T")


class CoreRunner:
    """Core with its state file, timers and planner.

    Invariants: `_changes` and `_effects` are those of the events since the last commit began.
    `_answers` has the requests without a reply, by number, and `_waiting` those who wait for the
    end of a job, `_step_ends` those for that of a step, by its key. `stored_messages` are the
    messages to the agent as of the last commit: it must not learn of others. While commits fail,
    `failure` says why; no event changes the state then, and `_deferred` has them in their order.
    """

    def __init__(self, settings: WlmSettings, store: StateStore) -> None:
        """Load the state. Raises FairbankError."""
        self.send_to_node: Callable[[str, Message], None] = lambda node, message: None
        self.send_to_agent: Callable[[AgentMessage], None] = lambda message: None
        self.failure: str | None = None
        self.started = time.time()
        self.totals = Totals()
        self._store = store
        self._clock = ControllerClock(store.clock())
        self._core = Core(settings)
        self._timers = Timers(self._clock, self.handle)
        self.planner = Planner(lambda: self.settings.scheduling, self._snapshot, self.handle)
        self._changes, self._effects = CommitData([], {}, {}), list[RunnerEffect]()
        self._work = asyncio.Event()
        self._deferred: list[CoreEvent] = []
        self._answers: dict[int, asyncio.Future[object]] = {}
        self._last_number = 0
        self._waiting: defaultdict[int, set[asyncio.Future[int]]] = defaultdict(set)
        self._watched: defaultdict[int, set[asyncio.Future[None]]] = defaultdict(set)
        self._step_ends: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)
        # SQLite's connection is used by one thread at a time, and a sync must not stop the loop.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="state")
        rows = [*store.rows()]
        self.stored_messages: dict[int, AgentMessage] = {}
        self._note_messages(rows)
        self.totals.count_rows(rows)
        self._add(self._core.load(rows, self.now()))

    @property
    def state(self) -> CoreState:
        """State of the core, for reading. It may be ahead of the last commit."""
        return self._core.state

    @property
    def settings(self) -> WlmSettings:
        return self.state.settings

    @property
    def up_seconds(self) -> int:
        """Time since the start of the controller."""
        return int(time.time() - self.started)

    def now(self) -> Moment:
        return self._clock.now()

    # ------------------------------------------------------------------ events

    async def request(self, caller: Caller, body: RequestBody) -> object:
        """Make a request, and return its reply when its changes are stored.

        Raises:
            FairbankError: the request is refused, or the state cannot be stored.
        """
        self.check_storage()
        self._last_number = number = self._last_number + 1
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        self.handle(RequestMade(number, caller, body))
        result = await answer
        if isinstance(result, FairbankError):
            raise result
        if isinstance(body, SubmitJob) and not body.test_only:
            self.totals.submitted += 1 if body.array is None else len(body.array.numbers)
        return result

    def handle(self, event: CoreEvent) -> None:
        """Take an event. Its effects follow when its changes are stored."""
        if self.failure is not None:
            self._deferred.append(event)
            return
        try:
            effects = self._core.handle(event, self.now())
        except Exception as error:  # noqa: BLE001  no event may end the controller
            # The core has taken everything back. To go on without this event is better than to end
            # with it: after a restart it would come again.
            _log.exception("the core has a bug: %s changes nothing", type(event).__name__)
            if isinstance(event, RequestMade):
                bug = FairbankError(f"the controller has a bug: {error}", remedy="see its log")
                self._add([Reply(event.number, bug)])
            return
        self._add(effects)

    def replace_core(self, core: Core, effects: Iterable[CoreEffect]) -> None:
        """Go on with another core, which has loaded the state of the present one."""
        core.state.backfilled = self.state.backfilled
        self._core = core
        self.planner.drop_plan()
        self._add([self._timers.clear, *effects])

    async def committed(self) -> None:
        """Wait until all changes so far are stored."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._add([lambda: None if stored.done() else stored.set_result(None)])
        await stored

    async def job_end(self, number: int) -> int:
        """Return the wait status of a job when it has ended; of an array the highest.

        Raises NotFound.
        """
        if not (jobs := self._jobs(number)):
            raise unknown("job", number)
        if (status := end_status(jobs)) is not None:
            await self.committed()
            return status
        end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[number].add(end)
        try:
            return await end
        finally:
            if number in self._waiting:  # the waiting command was killed
                self._waiting[number].discard(end)

    async def job_start(self, number: int, *, is_early: bool = False) -> WlmJob:
        """Return a job when it runs, or has ended. Raises NotFound.

        `is_early`: return it as soon as its start is sent to its nodes.
        """
        while True:
            job = self.state.jobs.get(number)
            if job is None:
                raise unknown("job", number)
            is_sent = is_early and job.active_run is not None and job.active_run.is_allowed
            if is_sent or job.state in BEGUN or job.state.has_ended:
                await self.committed()
                return job
            change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._watched[number].add(change)
            try:
                await change
            finally:
                if number in self._watched:
                    self._watched[number].discard(change)

    async def step_end(self, key: str) -> None:
        """Return when a step has ended. What is requested from then on is stored with its end."""
        if key not in self.state.steps:
            return
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._step_ends[key].add(end)
        try:
            await end
        finally:
            if key in self._step_ends:  # it has not ended in time
                self._step_ends[key].discard(end)

    # ------------------------------------------------------------------ stored data

    async def put_content(self, content: bytes) -> str:
        """Store a script or an environment, and return its digest.

        It is committed before what is requested afterwards. Raises Unavailable.
        """
        self.check_storage()
        key = digest(content)
        self._changes.contents[key] = content
        self._work.set()
        return key

    async def content(self, key: str) -> bytes:
        """Return a script or an environment by its digest. Raises Corrupt."""
        content = self._changes.contents.get(key)
        return await self._in_thread(self._store.content, key) if content is None else content

    async def ended_runs(self, selection: RunFilter) -> list[AccountedRun]:
        """Return accounting records of runs, in the order of their ends."""
        return await self._in_thread(self._store.ended_runs, selection)

    async def ended_steps(self, runs: Collection[Run]) -> list[EndedStep]:
        """Return the accounting records of the steps of some runs."""
        return await self._in_thread(self._store.ended_steps, runs)

    async def recorded_runs(self, jobs: Collection[int]) -> set[str]:
        """Return the runs of some jobs that have an accounting record."""
        return await self._in_thread(self._store.recorded_runs, jobs)

    def record_outcome(self, run: Run, outcome: RunOutcome) -> None:
        """Store how the batch script of a run ended, with its usage."""
        self._changes.outcomes[run] = outcome
        self._work.set()

    # ------------------------------------------------------------------ commits

    async def run(self) -> None:
        """Commit changes and carry out effects, until cancelled."""
        cleaning = asyncio.create_task(self._remove_contents())
        try:
            while True:
                await self._work.wait()
                await self.flush()
        finally:
            cleaning.cancel()

    async def flush(self) -> None:
        """Commit the changes so far, and carry out their effects."""
        self._work.clear()
        changes, self._changes = self._changes, CommitData([], {}, {})
        effects, self._effects = self._effects, []
        if not changes.is_empty:
            await self._commit(changes)
        self._note_messages(changes.rows)
        self.totals.count_rows(changes.rows)
        for effect in effects:
            self._carry_out(effect)
        self._notify_waiting(changes)
        while self._deferred and self.failure is None:
            self.handle(self._deferred.pop(0))

    def close(self) -> None:
        """Close the state file. What is not committed is lost, as if the controller were killed."""
        self._timers.clear()
        self.planner.close()
        self._thread.submit(self._store.close).result()
        self._thread.shutdown()

    async def _commit(self, changes: CommitData) -> None:
        """Write changes until it succeeds."""
        while True:
            try:
                begun = time.monotonic()
                await self._in_thread(self._store.write, changes, self._clock.reading())
                self.totals.count_commit(time.monotonic() - begun)
                break
            except (sqlite3.Error, OverflowError) as error:
                if self.failure is None:
                    _log.error("cannot store the state, which stays as it is: %s", error)
                self.failure = str(error)
                await asyncio.sleep(RETRY_SECONDS)
        if self.failure is not None:
            _log.info("the state is stored again")
            self.failure = None

    def _add(self, effects: Iterable[RunnerEffect]) -> None:
        for effect in effects:
            if isinstance(effect, StoreRows):
                self._changes.rows.extend(effect.rows)
                self._note_step_ends(effect.rows)
            elif isinstance(effect, RequestPlan):
                self.planner.request()  # a pass reads the state, which may be ahead of the commit
            else:
                self._effects.append(effect)
        self._work.set()

    def _carry_out(self, effect: RunnerEffect) -> None:
        match effect:
            case Reply(request=number, answer=answer):
                future = self._answers.pop(number)
                if not future.done():
                    future.set_result(answer)
            case Send(node="", message=AgentMessage() as message):
                self.send_to_agent(message)
            case Send(node=node, message=message):
                self.send_to_node(node, message)
            case SetTimer(kind=TimerKind.START):
                # The start is sent only now: a commit may take longer than BatchStartTimeout.
                seconds = self.settings.jobs.batch_start_timeout
                self._timers.set(effect._replace(at=max(effect.at, self.now().mono + seconds)))
            case SetTimer():
                self._timers.set(effect)
            case LogLine(level=level, text=text):
                _log.log(_LEVELS[level], "%s", text)
            case _ if callable(effect):
                effect()

    # ------------------------------------------------------------------ helpers

    def check_storage(self) -> None:
        """Raise Unavailable while the state cannot be stored."""
        if self.failure is not None:
            text = f"the controller cannot store its state now: {self.failure}"
            raise Unavailable(text, remedy="free disk space; nothing was changed")

    def _snapshot(self) -> tuple[Callable[[], OnNodes], int]:
        now = self.now()
        return partial(pass_snapshot, self.state.frozen(), now), now.wall

    def _note_messages(self, rows: Iterable[StoredRow]) -> None:
        for table, key, value in rows:
            if isinstance(value, AgentMessage):
                self.stored_messages[int(key)] = value
            elif table == "messages":
                self.stored_messages.pop(int(key), None)

    def _note_step_ends(self, rows: Iterable[StoredRow]) -> None:
        """Answer those who wait for a step that has ended."""
        ended = {key for table, key, value in rows if table == "steps" and value is None}
        for key in ended & self._step_ends.keys():
            for end in self._step_ends.pop(key):
                if not end.done():
                    end.set_result(None)

    def _jobs(self, number: int) -> list[WlmJob]:
        """Return a job, or the tasks of an array."""
        return [self.state.jobs[job.number] for job in self.state.index.with_id(number)]

    def _notify_waiting(self, changes: CommitData) -> None:
        """Answer those who wait for a job that has ended, or watch for its start."""
        if not (self._waiting or self._watched):
            return
        jobs = [row.value for row in changes.rows if isinstance(row.value, WlmJob)]
        for number in {job.number for job in jobs} & self._watched.keys():
            for change in self._watched.pop(number):
                if not change.done():
                    change.set_result(None)
        ended = {job.request.array or job.number for job in jobs if job.state.has_ended}
        ended |= {job.number for job in jobs if job.state.has_ended}
        for number in ended & self._waiting.keys():
            if (status := end_status(self._jobs(number))) is not None:
                for end in self._waiting.pop(number):
                    if not end.done():
                        end.set_result(status)

    async def _remove_contents(self) -> None:
        """Delete scripts and environments that no job uses any more, now and then."""
        while True:
            await asyncio.sleep(CONTENT_SECONDS)
            jobs = [job.submission for job in self.state.jobs.values()]
            used = {key for job in jobs for key in (job.script, job.environment)}
            try:
                before = int(time.time()) - CONTENT_SECONDS
                await self._in_thread(self._store.remove_contents, used, before)
            except sqlite3.Error as error:
                _log.warning("cannot delete scripts that are of no use any more: %s", error)

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, function, *arguments)


def end_status(jobs: Sequence[WlmJob]) -> int | None:
    """Return the wait status of jobs that have all ended, the highest; None if one has not."""
    if not all(job.state.has_ended for job in jobs):
        return None
    return max((_status(job) for job in jobs), default=0)


def _status(job: WlmJob) -> int:
    status = 0 if job.run is None else job.run.status
    return status or (0 if job.state.base == "COMPLETED" else FAILED_STATUS)
