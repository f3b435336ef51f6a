"""Checks of the invariants of the workload manager (wlm.md, section 5) on a live state. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from fairbank.cluster.job import Run
from fairbank.core.health import HealthCheck
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.bindings import NodeBinding
from fairbank.wlm.core.jobs import Moment, WlmJob, WlmRun
from fairbank.wlm.core.snapshot import occupied_nodes
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.core.steps.step import StepGrant, WlmStep
from fairbank.wlm.protocol.messages import Registration, RunStatus

SHOWN_MAX = 5
"""Most faults of one kind that are named."""
CLOCK_SECONDS = 5
"""Largest difference of two clocks."""
AGENT_SECONDS = 60
"""Longest time that a message to the agent may take."""
CORE, GPU = "core", "GPU"
_REPORT = "report this fault; fairbank cluster down and fairbank cluster up start all daemons again"
_DRAIN = "scontrol update NodeName=NODE State=DRAIN Reason=processes; end the processes"


class LiveFacts(NamedTuple):
    """State of the core, and what was asked beside it.

    Invariants: `earlier` are the jobs before the registrations and the accounting were read. What
    changes meanwhile is in one of both states.

    nodes        registration of each configured node; None: it does not answer
    recorded     runs with an accounting record, as text, of the earlier jobs
    end_seconds  KillWait + UnkillableStepTimeout
    boot_time    boot of the controller's host by its wall clock, in seconds since 1970
    """

    state: CoreState
    earlier: Mapping[int, WlmJob]
    nodes: Mapping[str, Registration | None]
    recorded: Collection[str]
    now: Moment
    end_seconds: int
    release: str
    boot_time: float


def check_cluster(facts: LiveFacts) -> Iterator[HealthCheck]:
    """Yield the invariants W1 to W8 and W12, the clocks and the releases, one check each."""
    for rule, find_faults, remedy in RULES:
        faults = [*find_faults(facts)]
        named = "; ".join(faults[:SHOWN_MAX])
        if len(faults) > SHOWN_MAX:
            named = f"{named}; and {len(faults) - SHOWN_MAX} more"
        yield HealthCheck(f"{rule}: not so: {named}" if faults else rule, not faults, remedy)


def _jobs(facts: LiveFacts) -> Collection[WlmJob]:
    return facts.state.jobs.values()


def _runs_on(facts: LiveFacts, node: str) -> dict[Run, WlmRun]:
    """Return the runs that have a node, or had it before the node was asked."""
    both = [*facts.earlier.values(), *facts.state.jobs_on(node)]
    return {job.run.run: job.run for job in both if job.run is not None and node in job.run.left}


def _statuses(facts: LiveFacts) -> Iterator[tuple[str, RunStatus]]:
    """Yield the runs with processes by node."""
    for name, node in facts.nodes.items():
        for status in () if node is None else node.runs:
            if status.state != "finished":
                yield name, status


def _shared_cores(facts: LiveFacts) -> Iterator[str]:
    state = facts.state
    for node in state.nodes:
        users: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        most: dict[tuple[str, int], int] = {}
        for number, grant in state.grants_on(node):
            binding = grant.binding
            for unit in _units(binding):
                users[unit].append(number)
                rows = binding.rows if unit[0] == CORE else 1
                most[unit] = min(most.get(unit, rows), rows)
        for (kind, number), jobs in users.items():
            if len(jobs) > most[kind, number]:
                yield f"{kind} {number} of node {node} has the jobs {_listed(jobs)}"


def _shared_step_units(facts: LiveFacts) -> Iterator[str]:
    users: dict[tuple[Run, str, str, int], WlmStep] = {}
    for step in facts.state.steps.values():
        job = facts.state.job_of(step.run)
        if job is None or job.active_run is None:
            yield f"step {step.key} has no job that runs"
            continue
        bindings = [grant.binding for grant in job.active_run.allocation.grants]
        own = {(one.node, *unit) for one in bindings for unit in _units(one)}
        here = [grant for grant in step.grants if grant.node in step.left]
        for node, kind, number in ((one.node, *unit) for one in here for unit in _units(one)):
            named = f"{kind} {number} of node {node}"
            if (node, kind, number) not in own:
                yield f"step {step.key} has {named}, which its job has not"
            if not (step.request.shares if kind == CORE else step.request.overlap):
                other = users.setdefault((step.run, node, kind, number), step)
                if other is not step:
                    yield f"steps {other.key} and {step.key} have {named}"


def _units(grant: NodeBinding | StepGrant) -> list[tuple[str, int]]:
    """Return the cores and GPUs of a job or a step on a node, with their numbers."""
    return [*((CORE, core) for core in grant.cores), *((GPU, gpu) for gpu in grant.gpus)]


def _unknown_starts(facts: LiveFacts) -> Iterator[str]:
    counts = Counter((name, status.run) for name, status in _statuses(facts))
    yield from (f"node {name} has run {run} twice" for (name, run), n in counts.items() if n > 1)
    for name, status in _statuses(facts):
        run = _runs_on(facts, name).get(status.run)
        if run is not None and not run.is_allowed and not run.end:
            yield f"node {name} has run {status.run}, whose start is not stored"


def _strays(facts: LiveFacts) -> Iterator[str]:
    for name, status in _statuses(facts):
        known = facts.state.nodes[name]
        is_known = status.run in _runs_on(facts, name) or status.run in known.strays
        if not is_known and known.state[0].is_usable:
            yield f"node {name} has run {status.run} ({status.state})"


def _unrecorded(facts: LiveFacts) -> Iterator[str]:
    cluster = facts.state.settings.cluster.cluster_name
    for job in facts.earlier.values():
        run = str(job.identity(cluster))
        if job.state.has_ended and run not in facts.recorded:
            yield f"run {run} has none"
    for job in _jobs(facts):
        run = str(job.identity(cluster))
        if not job.state.has_ended and run in facts.recorded:
            yield f"run {run} has one and has not ended"


def _late_messages(facts: LiveFacts) -> Iterator[str]:
    messages = facts.state.messages.values()
    asked_about = {message.run.run for message in messages if message.kind == "prolog"}
    for job in _jobs(facts):
        run = job.active_run
        if run is not None and not run.is_allowed and run.run not in asked_about:
            yield f"run {run.run} waits for a verdict that nothing requests"
    for message in messages:
        since = message.run.ended or message.run.started or message.run.allocated
        if (late := facts.now.mono - since.mono) > AGENT_SECONDS:
            yield f"the {message.kind} of run {message.run.run} waits since {late} s"


def _ineligible(facts: LiveFacts) -> Iterator[str]:
    for job in _jobs(facts):
        run = job.active_run
        if run is None:
            continue
        if not job.dependencies.is_met:
            yield f"job {job.name} runs and has open dependencies"
        if job.request.eligible > run.allocated.wall:
            yield f"job {job.name} was started before its begin time"
        if run.allocation.partition not in job.request.partitions:
            yield f"job {job.name} runs in partition {run.allocation.partition}"
    machine = occupied_nodes(facts.state, facts.now)
    for place in node_set.each(machine.free.overdrawn()):
        yield f"node {facts.state.table.nodes[place].name} has more allocated than it has"


def _late_runs(facts: LiveFacts) -> Iterator[str]:
    over = facts.state.settings.jobs.over_time_limit
    if over is None:  # UNLIMITED
        return
    allowed = over + facts.end_seconds + CLOCK_SECONDS
    for name, status in _statuses(facts):
        job, run = facts.state.job_of(status.run), _runs_on(facts, name).get(status.run)
        is_drained = not facts.state.nodes[name].state[0].is_usable
        if job is None or run is None or run.started is None or is_drained:
            continue
        limit, has_processes = job.request.limit, status.state in ("starting", "running")
        if limit is None or not has_processes:
            continue
        late = run.ran(facts.now) - limit - allowed
        if late > 0:
            yield f"run {run.run} on node {name} is {late} s late"


def _starts_on_bad_nodes(facts: LiveFacts) -> Iterator[str]:
    for name, status in facts.state.nodes.items():
        # A node that was never up, or that was set DOWN without a reason, has no time.
        if status.condition.state.is_usable or not status.reason:
            continue
        for job in facts.state.jobs_on(name):
            if job.run is not None and job.run.allocated.wall > status.reason_since:
                condition = status.condition.value
                yield f"job {job.name} was started on node {name}, which is {condition}"


def _silent_nodes(facts: LiveFacts) -> Iterator[str]:
    yield from (f"node {name} does not" for name, node in facts.nodes.items() if node is None)


def _wrong_clocks(facts: LiveFacts) -> Iterator[str]:
    for name, node in facts.nodes.items():
        ahead = 0 if node is None else round(node.boot_time - facts.boot_time)
        if abs(ahead) > CLOCK_SECONDS:  # nodes and controller are on one host
            yield f"the clock of node {name} differs by {ahead} s"
    latest = facts.now.wall + CLOCK_SECONDS
    for job in _jobs(facts):
        if job.request.submitted > latest:
            yield f"job {job.name} was submitted {job.request.submitted - facts.now.wall} s ahead"


def _other_releases(facts: LiveFacts) -> Iterator[str]:
    for name, node in facts.nodes.items():
        if node is not None and node.release != facts.release:
            yield f"node {name} is of {node.release}"


def _listed(jobs: Collection[int]) -> str:
    return ", ".join(map(str, sorted(jobs)))


RULES: Sequence[tuple[str, Callable[[LiveFacts], Iterator[str]], str]] = (
    ("W1: no core or GPU has more jobs than it may have", _shared_cores, _REPORT),
    ("W2: no run was started twice, or before its start was stored", _unknown_starts, _REPORT),
    ("W3: a run has all nodes where its processes are", _strays, _DRAIN),
    ("W4: each run has one accounting record when it has ended", _unrecorded, _REPORT),
    (
        "W5: the agent knows each run that has begun or ended",
        _late_messages,
        "fairbank cluster status; the logs of bank and agent say more",
    ),
    ("W6: only jobs that may start have nodes", _ineligible, _REPORT),
    ("W7: no process of a job lives past its time limit", _late_runs, _DRAIN),
    ("W8: nodes that are not usable get no jobs", _starts_on_bad_nodes, _REPORT),
    ("W12: a step has cores and GPUs of its job alone", _shared_step_units, _REPORT),
    ("all nodes answer", _silent_nodes, "fairbank cluster status; sinfo -R"),
    (
        "the clocks of controller and nodes agree, and no job is of a later time",
        _wrong_clocks,
        "set the clock of this host, and keep it with NTP",
    ),
    (
        "the nodes are of the controller's release",
        _other_releases,
        "fairbank cluster down; fairbank cluster up",
    ),
)
"""Rules, the functions that find their faults, and the remedies."""
