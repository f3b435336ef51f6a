"""List of planted faults: a text of the source, what it becomes, and the tests that must find it.

Each text is in its file once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

Judge = Literal["core", "world", "controller", "node"]
JUDGES: Mapping[Judge, Sequence[str]] = {
    # The random histories find them too, but would make each smaller for minutes.
    "core": ("tests/wlm/core", "--ignore=tests/wlm/core/test_random_histories.py"),
    "world": ("tests/wlm/simulation",),
    "controller": ("tests/wlm/controller",),
    "node": ("tests/wlm/node/test_jobs.py", "tests/wlm/node/test_kills.py"),
}
"""Tests by judge. Those that need a bank as a process are left out."""


class PlantedFault(NamedTuple):
    """Fault in a file of fairbank/wlm. An empty `wrong` text deletes the right one."""

    name: str
    judge: Judge
    file: str
    right: str
    wrong: str


CORE = (
    PlantedFault(
        "start before store",
        "core",
        "core/transition.py",
        "return [*stored, *self._effects, *plan]",
        "return [*self._effects, *stored, *plan]",
    ),
    PlantedFault(
        "start whose allowance is not stored",
        "core",
        "core/starts.py",
        'tx.put_job(job, run=run, reason="None")\n    for node',
        "for node",
    ),
    PlantedFault(
        "verdict of an older run",
        "core",
        "core/starts.py",
        "job = tx.state.job_of(verdict.run)",
        "job = tx.state.jobs.get(verdict.run.job_id)",
    ),
    PlantedFault(
        "second verdict on a run",
        "core",
        "core/starts.py",
        "if job is None or run is None or run.is_allowed:",
        "if job is None or run is None:",
    ),
    PlantedFault(
        "held job starts by an old plan",
        "core",
        "core/starts.py",
        "or job.hold_reason is not None\n        or request",
        "or request",
    ),
    PlantedFault(
        "start before the begin time", "core", "core/starts.py", "or request.eligible > now", ""
    ),
    PlantedFault(
        "start on nodes that became unusable",
        "core",
        "core/starts.py",
        "if node_set.without(placement.nodes, usable):",
        "if not placement.nodes:",
    ),
    PlantedFault(
        "start that takes no nodes from the next one",
        "core",
        "core/starts.py",
        "nodes.take(start.placement)\n        bound = bind(nodes.cluster, start.placement, held)",
        "bound = bind(nodes.cluster, start.placement, {})",
    ),
    PlantedFault(
        "core that is bound twice",
        "core",
        "core/starts.py",
        "held[binding.node].append(binding)",
        "pass",
    ),
    PlantedFault(
        "nodes freed before the processes have ended",
        "core",
        "core/ends.py",
        "left = run.left if run.is_allowed else ()",
        "left: tuple[str, ...] = ()",
    ),
    PlantedFault(
        "all nodes freed with the first",
        "core",
        "core/ends.py",
        "left = tuple(other for other in run.left if other != node)",
        "left: tuple[str, ...] = ()",
    ),
    PlantedFault(
        "lost epilog message",
        "core",
        "core/ends.py",
        'tx.send_to_agent("epilog", job, job.run)',
        "pass",
    ),
    PlantedFault(
        "message that is not kept until it is acknowledged",
        "core",
        "core/transition.py",
        'self.put("messages", number, message)',
        "pass",
    ),
    PlantedFault(
        "second accounting record",
        "core",
        "core/ends.py",
        "if run is None:\n        # It waited.",
        "if True:\n        # It waited.",
    ),
    PlantedFault(
        "off-by-one time limit",
        "core",
        "core/timers.py",
        "if timer.kind.time(tx.now) >= due:",
        "if timer.kind.time(tx.now) > due:",
    ),
    PlantedFault(
        "off-by-one number of launches",
        "core",
        "core/ends.py",
        "elif failures > tx.state.settings.jobs.max_batch_requeue:",
        "elif failures >= tx.state.settings.jobs.max_batch_requeue:",
    ),
    PlantedFault(
        "time counted from the allocation",
        "core",
        "core/node_messages.py",
        "run = msgspec.structs.replace(run, started=tx.now)",
        "run = msgspec.structs.replace(run, started=run.allocated)",
    ),
    PlantedFault(
        "no grace time",
        "core",
        "core/ends.py",
        "elif (run.grace_ends or 0) <= tx.now.mono:",
        "else:",
    ),
    PlantedFault(
        "node that is trusted while a run is left",
        "core",
        "core/ends.py",
        "tx.put_node(node, strays=(*tx.state.nodes[node].strays, run.run))",
        "pass",
    ),
    PlantedFault(
        "message of a node that the run has left",
        "core",
        "core/node_messages.py",
        "job.run is not None and node in job.run.left else None",
        "job.run is not None else None",
    ),
    PlantedFault(
        "unknown run that goes on",
        "core",
        "core/node_messages.py",
        "tx.send(node, EndJob(run=seen.run, reason=reason))",
        "pass",
    ),
    PlantedFault(
        "second start of a run that its node has lost",
        "core",
        "core/node_messages.py",
        "elif has_booted or job.state in BEGUN:",
        "elif has_booted:",
    ),
    PlantedFault(
        "start that got lost with the controller",
        "core",
        "core/node_messages.py",
        "send_start_to(tx, job, run, node)",
        "pass",
    ),
    PlantedFault(
        "task of an array that is forgotten before the others",
        "core",
        "core/ends.py",
        "if len(ends) < len(tasks):",
        "if not ends:",
    ),
    PlantedFault(
        "signal that counts as success",
        "core",
        "core/job_states.py",
        'return (E.FAILED, RAISED_SIGNAL) if signal else (E.COMPLETED, "None")',
        'return E.COMPLETED, "None"',
    ),
    PlantedFault(
        "timers lost with the controller",
        "core",
        "core/controller.py",
        "set_all_timers(tx)\n        for",
        "for",
    ),
    PlantedFault(
        "every user is an operator",
        "core",
        "core/requests/rights.py",
        "return caller.uid == ROOT_UID or",
        "return caller.uid >= ROOT_UID or",
    ),
    PlantedFault(
        "job that stays held when the agent returns",
        "core",
        "core/starts.py",
        "job.held_by is HeldBy.BANK and job.reason == NO_ANSWER:",
        "job.held_by is HeldBy.BANK and job.reason != NO_ANSWER:",
    ),
)
CONTROLLER = (
    PlantedFault(
        "effects before the commit",
        "controller",
        "controller/core_runner.py",
        "if not changes.is_empty:\n            await self._commit(changes)",
        "for effect in effects:\n            self._carry_out(effect)\n        effects = []\n"
        "        if not changes.is_empty:\n            await self._commit(changes)",
    ),
    PlantedFault(
        "messages that are not sent again to the agent",
        "world",
        "controller/agent_link.py",
        "for _, message in sorted(self._stored().items()):\n                self.send(message)",
        "pass",
    ),
    PlantedFault(
        "first state of a row wins",
        "controller",
        "controller/state_store.py",
        "for row in changes.rows if row.table not in RECORDS}",
        "for row in changes.rows[::-1] if row.table not in RECORDS}",
    ),
    PlantedFault(
        "Epilog that is not waited for",
        "core",
        "core/node_messages.py",
        'end, is_cleared = seen.end, seen.state == "finished"',
        "end, is_cleared = seen.end, seen.end is not None",
    ),
    PlantedFault(
        "silent node that keeps its jobs",
        "controller",
        "controller/nodes/node_link.py",
        "self._runner.handle(NodeSilent(self._name))",
        "pass",
    ),
    PlantedFault(
        "time measured on the wall clock",
        "world",
        "core/jobs.py",
        "max(end.mono - self.started.mono - self.paused_until(now), 0)",
        "max(end.wall - self.started.wall - self.paused_until(now), 0)",
    ),
)
NODE = (
    PlantedFault(
        "repeated start",
        "node",
        "node/node_server.py",
        "if start.run in self._runs:\n            return",
        "",
    ),
    PlantedFault(
        "run that survives the boot of its node",
        "node",
        "node/node_run.py",
        "if self._stored.boot_id != self._context.boot_id:",
        "if not self._stored.boot_id:",
    ),
    PlantedFault(
        "Epilog whose status is lost",
        "node",
        "node/node_run.py",
        "await self._store(end, status)",
        "await self._store(end, 0)",
    ),
    PlantedFault(
        "Prolog whose failure is ignored",
        "node",
        "node/node_run.py",
        "if status != 0:",
        "if status < 0:",
    ),
    PlantedFault(
        "end that is not stored on a full disk",
        "node",
        "node/node_run.py",
        "await asyncio.sleep(STORE_SECONDS)",
        "break",
    ),
    PlantedFault(
        "end that was requested before the start",
        "node",
        "node/step_process.py",
        "if self.end_request is not None:\n            await self.end(",
        "if self.end_request is None:\n            await self.end(",
    ),
)
FAULTS: Sequence[PlantedFault] = (*CORE, *CONTROLLER, *NODE)
