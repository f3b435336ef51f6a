"""Transition: the changes and effects of one event, all of them or none."""

from __future__ import annotations

from typing import Any

import msgspec

from fairbank.jobqueue.dependencies import DependencyJob
from fairbank.wlm.core.due_times import due_times
from fairbank.wlm.core.effects import (
    AgentMessage,
    AgentMessageKind,
    CoreEffect,
    LogLevel,
    LogLine,
    Message,
    Reply,
    RequestPlan,
    Send,
    SetTimer,
    StoredRow,
    StoreRows,
    Table,
)
from fairbank.wlm.core.events import TimerKind
from fairbank.wlm.core.job_states import JobEvent, next_state
from fairbank.wlm.core.jobs import EndedRun, Moment, WlmJob, WlmRun
from fairbank.wlm.core.state import CHANGE, CoreState, NodeStatus
from fairbank.wlm.core.steps.step import EndedStep, StepUsage

AGENT = ""
"""Receiver of messages that are not for a node."""


class Transition:
    """Changes of the state by one event, and its effects.

    A change is made at once, so that later steps of the event see it, and can be taken back.

    Invariants: `_before` has the value before of each changed row. `changed_jobs` has by number
    what jobs were for dependencies before they changed; `ends.settle_dependencies` empties it.
    """

    def __init__(self, state: CoreState, now: Moment) -> None:
        self.state, self.now = state, now
        self.changed_jobs: dict[int, DependencyJob | None] = {}
        self._before: dict[tuple[Table, Any], Any] = {}
        self._records: list[StoredRow] = []
        self._effects: list[CoreEffect] = []
        self._needs_plan = False

    # --- changes of the state

    def put(self, table: Table, key: Any, value: Any) -> None:
        """Set a row, or delete it with None."""
        before = self.state.put(table, key, value)
        self._before.setdefault((table, key), before)

    def put_job(self, job: WlmJob, **changes: Any) -> WlmJob:
        """Store a job with changes, and return it."""
        if changes:
            job = msgspec.structs.replace(job, **changes)
        job = job.with_wait(self.now.wall)
        index = self.state.index
        before = index.with_number(job.number)
        self.put("jobs", job.number, job)
        if index.with_number(job.number) is not before:
            self.changed_jobs.setdefault(job.number, before)
        return job

    def put_run(self, job: WlmJob, run: WlmRun, **changes: Any) -> WlmJob:
        """Store a job with changes of its run, and return it."""
        return self.put_job(job, run=msgspec.structs.replace(run, **changes))

    def move(self, job: WlmJob, event: JobEvent, **changes: Any) -> WlmJob:
        """Store a job in the state after an event. Raises Conflict if its state forbids it."""
        return self.put_job(job, state=next_state(job.state, event), **changes)

    def put_node(self, name: str, **changes: Any) -> NodeStatus:
        """Store the status of a node with changes, and return it."""
        status = msgspec.structs.replace(self.state.nodes[name], **changes)
        self.put("nodes", name, status)
        return status

    def count(self, counter: str, first: int, step: int = 1) -> int:
        """Return the value of a counter, and move it on."""
        value = self.state.counters.get(counter, first)
        self.put("counters", counter, value + step)
        return value

    def next_id(self) -> int:
        """Return a job id that no known job has: after the last one, then from FirstJobId again."""
        cluster = self.state.settings.cluster
        number = self.state.counters.get("job", cluster.first_job_id)
        while number > cluster.max_job_id or number in self.state.jobs:
            number = cluster.first_job_id if number > cluster.max_job_id else number + 1
        self.put("counters", "job", number + 1)
        return number

    def split_task(self, record: WlmJob, task: int) -> WlmJob:
        """Return a task of an array as a job of its own, and take it out of the record.

        The last task keeps the id of the record.
        """
        tasks = tuple(other for other in record.tasks if other != task)
        number = self.next_id() if tasks else record.number
        if tasks:
            self.put_job(record, tasks=tasks)
        request = msgspec.structs.replace(record.request, number=number, task=task)
        return self.put_job(record, request=request, tasks=())

    def record(self, run: EndedRun) -> None:
        """Add the accounting record of a run."""
        self._records.append(StoredRow("runs", str(run.identity), run))

    def record_step(self, ended: EndedStep) -> None:
        """Add the accounting record of a step."""
        self._records.append(StoredRow("ended_steps", ended.step.key, ended))

    def record_usage(self, late: StepUsage) -> None:
        """Add the usage of a node to the accounting record of a step."""
        self._records.append(StoredRow("step_usages", f"{late.step}.{late.node}", late))

    # --- effects

    def send(self, node: str, message: Message) -> None:
        self._effects.append(Send(node, message))

    def send_to_agent(self, kind: AgentMessageKind, job: WlmJob, run: WlmRun) -> None:
        """Send a message to the agent, if there is a bank. It is kept until the agent has it."""
        if not self.state.settings.bank.socket:
            return
        # The agent gives no verdict on a run whose end it knows, so the question must not wait.
        replaced = {"epilog": "prolog", "limit": "limit"}.get(kind)
        for number, earlier in list(self.state.messages.items()):
            if earlier.kind == replaced and earlier.run.run == run.run:
                self.put("messages", number, None)
        number = self.count("message", 1)
        message = AgentMessage(
            number=number, kind=kind, run=run, request=job.request, submission=job.submission
        )
        self.put("messages", number, message)
        self.send(AGENT, message)

    def reply(self, request: int, answer: object) -> None:
        self._effects.append(Reply(request, answer))

    def set_timer(self, kind: TimerKind, number: int, at: int) -> None:
        """Set a timer, which fires at once if its time has come."""
        self._effects.append(SetTimer(kind, number, at))

    def set_timers(self, job: WlmJob, before: WlmJob | None = None) -> None:
        """Set the timers of a job, but those that it had before."""
        known = () if before is None else tuple(due_times(self.state, before))
        for kind, at in due_times(self.state, job):
            # A begin that is over is of no use; a warning still is.
            is_over = kind is TimerKind.BEGIN and at <= kind.time(self.now)
            if (kind, at) not in known and not is_over:
                self.set_timer(kind, job.number, at)

    def log(self, level: LogLevel, text: str) -> None:
        self._effects.append(LogLine(level, text))

    def request_plan(self) -> None:
        """Request a scheduling pass, once for all changes of the event."""
        self._needs_plan = True

    # --- end of the event

    def roll_back(self) -> None:
        """Take all changes back, and drop all effects."""
        for (table, key), before in reversed(self._before.items()):
            self.state.put(table, key, before)
        self._before.clear()
        self._records.clear()
        self._effects.clear()
        self._needs_plan = False

    def effects(self) -> list[CoreEffect]:
        """Return the effects: the rows that differ first, so that nothing precedes their commit.

        Jobs that have changed get their timers.
        """
        rows = self._changed_rows()
        for row in rows:
            if isinstance(row.value, WlmJob):
                self.set_timers(row.value, self._before["jobs", row.value.number])
        if rows:
            change = self.state.note_change(row.table for row in rows)
            self.state.put("counters", CHANGE, change)
            rows.append(StoredRow("counters", CHANGE, change))
        stored = [StoreRows(tuple(rows))] if rows else []
        plan = [RequestPlan()] if self._needs_plan else []
        return [*stored, *self._effects, *plan]

    def _changed_rows(self) -> list[StoredRow]:
        rows = [
            StoredRow(table, str(key), value)
            for (table, key), before in self._before.items()
            if (value := self.state.tables[table].get(key)) != before
        ]
        return rows + self._records
