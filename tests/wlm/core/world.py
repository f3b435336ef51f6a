"""Small world around the core: a state file, nodes, an agent, clocks and a planner.

It carries out effects in their order, and checks the invariants of the workload manager by what it
sees itself: stored rows, messages, processes.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import msgspec

from fairbank.cluster.job import Run
from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules, PartitionState
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import FairbankError
from fairbank.core.submission.arrays import parse_array
from fairbank.core.submission.dependencies import parse_dependencies
from fairbank.jobqueue.arrays import JobSelection, parse_selection
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.settings import PrioritySettings
from fairbank.scheduling.machines.nodes import Preemption
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.wlm.controller.state_store import ROW_TYPES
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.controller import Core
from fairbank.wlm.core.effects import (
    AgentMessage,
    CoreEffect,
    Reply,
    RequestPlan,
    Send,
    SetTimer,
    StartRun,
    StartTasks,
    StoredRow,
    StoreRows,
    Table,
)
from fairbank.wlm.core.jobs import EndedRun, Moment, Owner, Submission, WlmJob
from fairbank.wlm.core.node_states import NodeCondition
from fairbank.wlm.core.settings import (
    AccountingSettings,
    DaemonSettings,
    SchedulingSettings,
    WlmSettings,
)
from fairbank.wlm.core.snapshot import pass_snapshot
from fairbank.wlm.core.steps.step import EndedStep, StepRequest, WlmStep
from fairbank.wlm.protocol.messages import (
    EndCause,
    EndJob,
    EndStep,
    ForgetRun,
    ForgetStep,
    RunOutcome,
    RunState,
    RunStatus,
    RunUsage,
    SignalJob,
    StepStatus,
    SuspendRun,
)

NO_USAGE = RunUsage()
AT_ONCE = 2.0**40
"""Time of an end that the core hears of at once: no message comes before its event."""
Action = Literal["run", "hold", "cancel"]
Stage = Literal["starting", "running", "ended", "cleared"]
STATES: dict[Stage, RunState] = {
    "starting": "prolog",
    "running": "running",
    "ended": "epilog",
    "cleared": "finished",
}
STAGES: dict[str, Stage] = {
    "starting": "starting",
    "running": "running",
    "ending": "ended",
    "cleared": "cleared",
}
ALICE, BOB, OPERATOR = ev.Caller(1000, "alice"), ev.Caller(1001, "bob"), ev.Caller(900, "olga")
_WANTED = (
    *("gpus", "gpus_per_task", "total_gpus", "tasks", "exclusive"),
    *("tasks_per_gpu", "cpus_per_gpu", "memory_per_gpu"),
)
"""Fields of the resources that a job requests."""
LAUNCH = "what the tasks execute"
START = Moment(1_700_000_000, 50)


class ModelNode:
    """Node daemon: the runs that it was sent, and how far they are.

    A run is `starting`, `running`, `ending` (its script has ended) or `cleared`. `begun` has every
    run that ever started here, so that none starts twice.
    """

    def __init__(self, name: str, cpus: int) -> None:
        self.resources = Node(name=name, cpus=cpus, memory=1_000)
        self.boots = 1
        self.is_silent = False
        self.runs: dict[Run, str] = {}
        self.status: dict[Run, int] = {}
        self.starts: dict[Run, StartRun] = {}
        self.begun: set[Run] = set()
        self.steps: dict[tuple[Run, int], StepStatus] = {}
        self.suspended: set[Run] = set()
        self.signals: list[SignalJob] = []

    @property
    def live(self) -> list[Run]:
        """Runs that may have processes here."""
        return [run for run, stage in self.runs.items() if stage != "cleared"]

    def receive(self, message: object) -> None:
        match message:
            case StartRun(run=run):
                if run.run not in self.begun:
                    self.begun.add(run.run)
                    self.runs[run.run], self.starts[run.run] = "starting", message
            case SuspendRun(run=identity, suspended=suspended):
                (self.suspended.add if suspended else self.suspended.discard)(identity)
            case SignalJob():
                self.signals.append(message)
            case EndJob(run=identity):
                if self.runs.get(identity) in ("starting", "running"):
                    self.runs[identity] = "ending"
                    self.status[identity] = 15
                elif identity not in self.runs:
                    # It never came here: nothing is left, and a late start must not begin.
                    self.begun.add(identity)
                    self.runs[identity] = "cleared"
            case StartTasks(step=step) if self.runs.get(step.run) == "running":
                self.steps[step.run, step.number] = StepStatus(run=step.run, step=step.number)
            case EndStep(run=identity, step=number, number=0) if (identity, number) in self.steps:
                self.end_step(identity, number, 15)
            case ForgetStep(run=identity, step=number):
                self.steps.pop((identity, number), None)
            case ForgetRun(run=identity):
                if self.runs.get(identity) == "cleared":
                    del self.runs[identity]

    def end_step(
        self, run: Run, number: int, status: int, usage: RunUsage = NO_USAGE
    ) -> ev.StepChanged:
        """End a step, and return the message about it."""
        end = RunOutcome(cause="exit", status=status, ended=AT_ONCE, usage=usage)
        self.steps[run, number] = seen = StepStatus(run=run, step=number, end=end)
        return ev.StepChanged(self.resources.name, seen)

    def registration(self) -> ev.NodeRegistered:
        runs = tuple(self.seen(run).status for run in self.runs)
        steps = tuple(step for step in self.steps.values() if step.run in self.runs)
        return ev.NodeRegistered(self.resources, f"boot {self.boots}", runs, steps)

    def seen(self, run: Run, **fields: Any) -> ev.RunChanged:
        """Return the message about a run that is here, which may have other fields."""
        about = {"stage": STAGES[self.runs[run]], "status": self.status.get(run, 0), **fields}
        return ev.RunChanged(self.resources.name, run_status(run, **about))


class World:
    """Core with everything around it.

    `rows` is the state file, as JSON. `bank` has the runs that the agent allowed: True while their
    credit is held. `parents` has the dependency of a job on a job that is no array.
    """

    def __init__(
        self, *partitions: PartitionRules, nodes: int = 2, cpus: int = 4, **settings: Any
    ) -> None:
        self.nodes = {f"n{at}": ModelNode(f"n{at}", cpus) for at in range(nodes)}
        self.settings = msgspec.structs.replace(
            core_settings(**settings),
            partitions=partitions or (PartitionRules(name="main", is_default=True),),
        )
        self.now = START
        self.rows: dict[tuple[Table, str], bytes] = {}
        self.accounting: dict[str, EndedRun] = {}
        self.ended_steps: dict[str, EndedStep] = {}
        self.step_usages: list[object] = []
        self.accepted: set[int] = set()
        self.prologs: list[AgentMessage] = []
        self.received: list[int] = []
        self.bank: dict[Run, bool] = {}
        self.timers: set[SetTimer] = set()
        self.needs_plan = False
        self.answers: dict[int, Any] = {}
        self.parents: dict[int, tuple[str, int]] = {}
        self.core = self._new_core()
        for node in self.nodes.values():
            self.event(node.registration())

    def _new_core(self) -> Core:
        nodes = tuple(node.resources for node in self.nodes.values())
        return Core(msgspec.structs.replace(self.settings, nodes=nodes))

    # --- what happens

    def event(self, event: ev.CoreEvent, *, is_lost: bool = False) -> list[CoreEffect]:
        """Handle an event. `is_lost`: the controller is killed after the commit."""
        effects = self.core.handle(event, self.now)
        self.carry_out(effects, is_lost=is_lost)
        return effects

    def request(self, body: ev.RequestBody, caller: ev.Caller = ALICE) -> Any:
        """Make a request, and return its answer, which may be an error."""
        number = len(self.answers)
        self.event(ev.RequestMade(number, caller, body))
        return self.answers[number]

    def submit(self, caller: ev.Caller = ALICE, **fields: Any) -> Any:
        """Submit a job, and return its number or the error.

        Fields are those of the job, its submission and the request; `array` and `dependency` are
        texts, `cpus` and `nodes` its size.
        """
        answer = self.request(submission(caller, **fields), caller)
        if isinstance(answer, FairbankError):
            return answer
        self.accepted.add(answer.number)
        return answer.number

    def step(
        self, job: int, caller: ev.Caller = ALICE, *, srun: Owner | None = None, **fields: Any
    ) -> Any:
        """Create a step of a job, and return it or the error. Fields are those of its request."""
        return self.request(ev.CreateStep(job, StepRequest(**fields), LAUNCH, srun), caller)

    def end_step(
        self, step: WlmStep, node: str, status: int = 0, usage: RunUsage = NO_USAGE
    ) -> None:
        """End the tasks of a step on a node."""
        self.event(self.nodes[node].end_step(step.run, step.number, status, usage))

    def restart(self) -> None:
        """Kill the controller, and start it from its state file."""
        before = self.core
        self.timers.clear()
        self.needs_plan = False
        self.core = self._new_core()
        effects = self.core.load(self.stored_rows(), self.now)
        for name, table in before.state.tables.items():
            if name != "counters":
                assert table == self.core.state.tables[name], name
        self.carry_out(effects)
        for node in self.nodes.values():
            if not node.is_silent:
                self.event(node.registration())

    def stored_rows(self) -> list[StoredRow]:
        return [
            StoredRow(table, key, msgspec.json.decode(data, type=ROW_TYPES[table]))
            for (table, key), data in self.rows.items()
        ]

    def plan(self) -> None:
        """Make a pass and carry it out."""
        self.needs_plan = False
        self.event(self.computed_plan())

    def computed_plan(self) -> ev.PlanMade:
        """Return the plan of a pass over the present state."""
        snapshot = pass_snapshot(self.core.state.frozen(), self.now)
        return ev.PlanMade(run_passes(snapshot, SchedulerParameters(), self.now.wall))

    def settle(self) -> None:
        """Make passes until none is requested."""
        for _ in range(20):
            if not self.needs_plan:
                return
            self.plan()
        raise AssertionError("passes are requested for ever")

    def advance(self, seconds: int) -> None:
        """Let time pass. Timers fire one after the other at their times."""
        target = Moment(self.now.wall + seconds, self.now.mono + seconds)
        fired = 0
        while self.timers:
            timer = min(self.timers, key=lambda one: (self._delay(one), one.kind.value, one.number))
            if self._delay(timer) > target.mono - self.now.mono:
                break
            self.timers.discard(timer)
            fired += 1
            assert fired < 10_000, f"{timer} fires for ever"
            delay = max(self._delay(timer), 0)
            self.now = Moment(self.now.wall + delay, self.now.mono + delay)
            self.event(ev.TimerFired(timer.kind, timer.number))
        self.now = target

    def _delay(self, timer: SetTimer) -> int:
        return timer.at - (self.now.wall if timer.kind.is_wall else self.now.mono)

    def answer_prologs(self, action: Action = "run") -> None:
        """Let the agent answer all prologs."""
        while self.prologs:
            self.answer_prolog(self.prologs[0], action)

    def answer_prolog(self, message: AgentMessage, action: Action) -> None:
        self.prologs.remove(message)
        if action == "run":
            self.bank.setdefault(message.run.run, True)
        verdict = ev.VerdictGiven(
            message.number, message.run.run, action, "Allocation_exhausted", "no credit"
        )
        self.event(verdict)

    # --- nodes

    def begin_all(self) -> None:
        """Let every start that has reached its node begin."""
        for node in self.nodes.values():
            for run in [run for run, stage in node.runs.items() if stage == "starting"]:
                self.begin(node, run)

    def begin(self, node: ModelNode, run: Run) -> None:
        node.runs[run] = "running"
        if not node.is_silent:
            self.event(node.seen(run))

    def end(self, number: int, status: int = 0) -> None:
        """End the script of a job by itself, and clear its nodes."""
        job = self.core.state.jobs[number]
        assert job.run is not None
        node, run = self.nodes[job.run.batch_node], job.run.run
        self.end_script(node, run, status)
        self.clear(number)

    def end_script(self, node: ModelNode, run: Run, status: int) -> None:
        node.runs[run], node.status[run] = "ending", status
        if not node.is_silent:
            self.event(node.seen(run))

    def clear(self, number: int) -> None:
        """Let all nodes of a job finish its clean-up."""
        job = self.core.state.jobs[number]
        for name in job.run.left if job.run is not None else ():
            assert job.run is not None
            self.clear_on(self.nodes[name], job.run.run)

    def clear_on(self, node: ModelNode, run: Run) -> None:
        node.runs[run] = "cleared"
        if not node.is_silent:
            self.event(node.seen(run))

    def run_one(self, **fields: Any) -> int:
        """Submit a job that starts at once, and return its number."""
        number = self.submit(**fields)
        self.settle()
        self.answer_prologs()
        self.begin_all()
        assert self.job(number).state.shown == "RUNNING"
        return int(number)

    def job(self, number: int) -> WlmJob:
        return self.core.state.jobs[number]

    def state(self, number: int) -> str:
        return self.job(number).state.value

    def reason(self, number: int) -> str:
        return self.job(number).shown_reason(self.now.wall)

    # --- effects

    def carry_out(self, effects: list[CoreEffect], *, is_lost: bool = False) -> None:
        """Carry out effects; after the commit only if the controller is not killed."""
        has_begun = False
        for effect in effects:
            match effect:
                case StoreRows(rows=rows):
                    assert not has_begun, "an effect stands before the rows"
                    self._commit(rows)
                case _ if is_lost:
                    pass
                case Reply(request=number, answer=answer):
                    self.answers[number] = answer
                case Send(node="", message=AgentMessage() as message):
                    self._receive_agent(message)
                case Send(node=name, message=message):
                    self._receive_node(self.nodes[name], message)
                case RequestPlan():
                    self.needs_plan = True
                case SetTimer():
                    self.timers.add(effect)
            has_begun = True
        self.check()
        if not is_lost:
            self._check_suspensions()
        while self.received:
            self.event(ev.MessageAcknowledged(self.received.pop(0)))

    def _commit(self, rows: tuple[StoredRow, ...]) -> None:
        for table, key, value in rows:
            if table == "runs":
                assert isinstance(value, EndedRun)
                assert key not in self.accounting, f"run {key} is recorded twice"  # W4
                self.accounting[key] = value
            elif table == "ended_steps":
                assert isinstance(value, EndedStep)
                assert key not in self.ended_steps, f"step {key} is recorded twice"
                self.ended_steps[key] = value
            elif table == "step_usages":
                self.step_usages.append(value)
            elif value is None:
                del self.rows[table, key]
            else:
                data = msgspec.json.encode(value)
                self._check_start(self.rows.get((table, key)), value)
                self.rows[table, key] = data

    def _check_start(self, before: bytes | None, job: object) -> None:
        """Check that a job that gets nodes may start on them: W6 and W8."""
        if not isinstance(job, WlmJob) or job.state.shown != "CONFIGURING" or job.run is None:
            return
        earlier = None if before is None else msgspec.json.decode(before, type=WlmJob)
        if earlier is not None and earlier.run is not None and earlier.run.run == job.run.run:
            return
        state = self.core.state
        assert job.held_by is None
        assert job.dependencies.is_met
        if job.number in self.parents:
            self._check_parent(*self.parents[job.number])
        assert job.request.eligible <= self.now.wall
        assert job.request.reservation in (None, *self.core.state.reservations)
        partition = state.partitions[job.run.allocation.partition]
        assert partition.state in (PartitionState.UP, PartitionState.DRAIN)
        self._check_limits(job)
        for name in job.run.allocation.nodes:
            assert state.nodes[name].condition is NodeCondition.UP
            assert not state.nodes[name].strays

    def _check_limits(self, started: WlmJob) -> None:
        """Check the throttle of an array and the CPUs of a QOS after a start."""
        active = [
            (job.request, job.active_run.allocation)
            for job in self.core.state.jobs.values()
            if job.active_run is not None
        ]
        array, throttle = started.request.array, started.request.throttle
        if throttle is not None:
            assert sum(request.array == array for request, _ in active) <= throttle
        accounting = self.settings.accounting
        for name, qos in accounting.qos.items():
            most = qos.limits.tres.get(LimitKind.GRP_TRES, {}).get("cpu")
            if most is not None and accounting.enforced.limits:
                used = (run.tres["cpu"] for request, run in active if request.qos == name)
                assert sum(used) <= most

    def _check_parent(self, kind: str, parent: int) -> None:
        """Check by the accounting that a dependency is met."""
        ends = [
            record.state
            for record in self.accounting.values()
            if record.identity.job_id == parent and record.state != "REQUEUED"
        ]
        if parent not in self.core.state.jobs:
            return
        if kind == "afterok":
            assert "COMPLETED" in ends
        elif kind == "afternotok":
            assert {*ends} - {"COMPLETED"} or "SPECIAL_EXIT" in self.job(parent).state.flags
        elif kind == "afterany":
            assert ends

    def _receive_agent(self, message: AgentMessage) -> None:
        run = message.run.run
        if message.kind == "prolog":
            if all(other.number != message.number for other in self.prologs):
                self.prologs.append(message)
            return
        if message.kind == "epilog":
            self.prologs = [other for other in self.prologs if other.run.run != run]
            if self.bank.get(run):
                self.bank[run] = False  # charged, or released
        self.received.append(message.number)

    def _receive_node(self, node: ModelNode, message: object) -> None:
        if isinstance(message, StartRun):  # W2: never before it is stored
            data = self.rows["jobs", str(message.request.number)]
            stored = msgspec.json.decode(data, type=WlmJob)
            assert stored.run is not None
            assert stored.run.run == message.run.run
            assert stored.run.is_allowed
        if not node.is_silent:
            node.receive(message)

    # --- invariants

    def check(self) -> None:
        """Check what must hold after each step."""
        state = self.core.state
        for name, node in self.nodes.items():
            bindings = [grant.binding for _, grant in state.grants_on(name)]
            jobs = Counter(core for binding in bindings for core in binding.cores)
            assert all(
                jobs[core] <= binding.rows for binding in bindings for core in binding.cores
            ), "W1"
            if node.is_silent or not state.nodes[name].condition.state.is_usable:
                continue
            expected = {job.run.run for job in state.jobs_on(name) if job.run is not None}
            assert set(node.live) <= expected | set(state.nodes[name].strays), "W3"
        for job in state.jobs.values():
            self._check_job(job)
        self._check_steps()

    def _check_steps(self) -> None:
        """Check that the cores of a step belong to its job, and to no other step: W12."""
        taken = Counter[tuple[Run, str, int]]()
        for step in self.core.state.steps.values():
            job = self.core.state.job_of(step.run)
            assert job is not None
            assert job.active_run is not None
            own = {one.binding.node: one.binding.cores for one in job.active_run.allocation.grants}
            for grant in step.grants:
                assert set(grant.cores) <= set(own[grant.node]), "W12"
                if not step.request.shares and grant.node in step.left:
                    taken.update((step.run, grant.node, core) for core in grant.cores)
        assert all(count == 1 for count in taken.values()), "W12"

    def _check_suspensions(self) -> None:
        """Check that just the suspended runs are suspended on their nodes."""
        for job in self.core.state.jobs.values():
            run = job.active_run
            assert (job.state.base == "SUSPENDED") == (run is not None and bool(run.suspended))
            for name in run.left if run is not None else ():
                node = self.nodes[name]
                if run is not None and not node.is_silent and run.run in node.runs:
                    assert (run.run in node.suspended) == (run.suspended is not None)

    def _check_job(self, job: WlmJob) -> None:
        identity = str(job.identity(self.settings.cluster.cluster_name))
        assert job.state.has_ended == (identity in self.accounting), "W4"
        run = job.active_run
        seconds = self.settings.run_seconds(job.request.limit)
        if run is None or run.suspended is not None:
            return  # its time stands still
        if run.started is not None and seconds is not None:
            latest = run.started.mono + run.paused + seconds
            is_due = SetTimer(ev.TimerKind.LIMIT, job.number, latest) in self.timers
            assert self.now.mono <= latest or is_due, "W7"

    def check_at_rest(self) -> None:
        """Check what must hold when every job has ended."""
        assert all(job.state.is_final for job in self.core.state.jobs.values())
        assert not any(self.bank.values()), "W5: a hold is open"
        assert not self.core.state.messages
        for number in self.accepted:
            assert any(
                record.identity.job_id == number and record.state != "REQUEUED"
                for record in self.accounting.values()
            ), "W4"


def run_status(
    run: Run,
    stage: Stage,
    status: int | None = 0,
    *,
    cause: EndCause = "exit",
    unkillable: tuple[int, ...] = (),
    epilog_status: int | None = None,
) -> RunStatus:
    """Return what a node says of a run at a stage."""
    has_ended = stage in ("ended", "cleared")
    return RunStatus(
        run=run,
        state=STATES[stage],
        end=RunOutcome(cause=cause, status=status, ended=AT_ONCE) if has_ended else None,
        unkillable=unkillable,
        epilog_status=epilog_status,
    )


def core_settings(**fields: Any) -> WlmSettings:
    """Return the settings with these fields, each in the group that has it."""
    settings = WlmSettings(
        operators=frozenset({OPERATOR.name}),
        priority=PrioritySettings(by_factors=False),
        cluster=DaemonSettings(cluster_name="lab"),
        scheduling=SchedulingSettings(preemption=Preemption()),
        accounting=AccountingSettings(needs_association=True, needs_qos=True),
    )
    for name, value in fields.items():
        group = next(
            (
                group
                for group in ("cluster", "scheduling", "accounting", "jobs", "bank")
                if hasattr(getattr(settings, group), name)
            ),
            None,
        )
        if group is not None:
            value = msgspec.structs.replace(getattr(settings, group), **{name: value})
        settings = msgspec.structs.replace(settings, **{group or name: value})
    return settings


def submission(caller: ev.Caller = ALICE, **fields: Any) -> ev.SubmitJob:
    """Return a submission; see `World.submit`."""
    array, dependency = fields.pop("array", None), fields.pop("dependency", None)
    wanted = ResourceRequest(
        nodes=fields.pop("nodes", 1),
        cpus_per_task=fields.pop("cpus", 1),
        memory_per_node=fields.pop("memory", None if "memory_per_gpu" in fields else 1),
        **{name: fields.pop(name) for name in _WANTED if name in fields},
    )
    about = {name: fields.pop(name) for name in Submission.__struct_fields__ if name in fields}
    request = {name: fields.pop(name) for name in ("held", "test_only", "owner") if name in fields}
    defaults = {"partitions": ("",), "limit": 600, "priority": 0, "account": "bio", "qos": "normal"}
    return ev.SubmitJob(
        job=PendingJob(number=0, user=caller.name, wanted=wanted, **{**defaults, **fields}),
        submission=Submission(
            **{"name": "train", "uid": caller.uid, "gid": caller.uid, "script": "digest", **about}
        ),
        array=None if array is None else parse_array(array, field="array"),
        dependencies=(
            None if dependency is None else parse_dependencies(dependency, field="dependency")
        ),
        **request,
    )


def named(text: str | int) -> JobSelection:
    return parse_selection(str(text))
