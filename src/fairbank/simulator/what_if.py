"""Comparison of a recorded workload with a changed one, and of perturbed copies of both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.progress import StageProgress
from fairbank.simulator.comparison import (
    add_grants,
    check_reopens,
    check_shares,
    simulate_policy,
    ticking,
)
from fairbank.simulator.engine.policies import SimulationPolicy
from fairbank.simulator.engine.simulation import SimulationPlan, SimulationResult, check_has_bank
from fairbank.simulator.results.measures import ScheduleStarts
from fairbank.simulator.traces.fast_reader import FastTrace, Source
from fairbank.simulator.traces.workload import OmittedJob, size_of
from fairbank.simulator.traces.workload_edits import (
    EditCounts,
    NameOf,
    WorkloadEdits,
    edit_workload,
    perturb_workload,
)

if TYPE_CHECKING:
    from fairbank.simulator.engine.grants import Budget

COPIES_MAX = 1_000


class MachineChange(NamedTuple):
    """Change of the machine: whole nodes, and processors."""

    nodes: int = 0
    processors: int = 0


class Question(NamedTuple):
    """Question to simulate: two policies, the first for the recorded workload; the other changes;
    number of perturbed copies, and their seed.
    """

    policy: SimulationPolicy
    other: SimulationPolicy
    changes: WorkloadEdits
    machine: MachineChange
    copies: int = 0
    seed: int = 1


class ResultPair(NamedTuple):
    """Results of a workload, and of the changed one."""

    recorded: SimulationResult
    changed: SimulationResult


class WhatIfResult(NamedTuple):
    """Results of the workload, and of each perturbed copy; and the number of jobs that each change
    applied to.
    """

    plain: ResultPair
    copies: list[ResultPair]
    met: EditCounts


def what_if(
    source: Source,
    question: Question,
    plan: SimulationPlan,
    *,
    holdings: Mapping[str, int] | None = None,
    budget: Budget | None = None,
    progress: StageProgress | None = None,
) -> WhatIfResult:
    """Simulate both workloads, and both of each copy, which is perturbed before it is changed.

    Args:
        source: opens the workload, which must be possible more than once.
        question: policies, changes, and number of perturbed copies.
        plan: processors and measures.
        holdings: shares by name or number of the account; None: those of the plan.
        budget: part of the recorded use that is granted; None: there is no bank.
        progress: called while jobs are read; None: nothing is reported.

    Raises:
        NotFound: a change applies to no job, or to an omitted one.
        InvalidInput: as `simulate_each`, or the machine is impossible.
    """
    if not 0 <= question.copies <= COPIES_MAX or question.copies == 1:
        remedy = f"a number from 2 to {COPIES_MAX}: one copy has no spread"
        raise InvalidInput(f"{question.copies} perturbed copies", field="perturbed", remedy=remedy)
    before, after = question.policy, question.other
    for policy in (before, after):
        check_has_bank(policy, has_bank=budget is not None)
    if budget is not None:
        plan = add_grants(source, plan, budget, holdings, progress)
    asker = _Asker(source, question, plan, holdings, progress)
    recorded = asker.run(before, "as recorded", change=False)
    check_shares(recorded, holdings)
    other = asker.run(after, "changed", change=True)
    met = asker.met
    _check(question.changes, met, distinct=asker.distinct)
    _check_runs(met, recorded, other)
    copies = []
    for copy in range(1, question.copies + 1):
        stage, seed = f"perturbed {copy} of {question.copies}", f"{question.seed}/{copy}"
        copies.append(
            ResultPair(
                asker.run(before, stage, change=False, seed=seed),
                asker.run(after, f"{stage}, changed", change=True, seed=seed),
            )
        )
    return WhatIfResult(ResultPair(recorded, other), copies, met)


class _Asker:
    def __init__(
        self,
        source: Source,
        question: Question,
        plan: SimulationPlan,
        holdings: Mapping[str, int] | None,
        progress: StageProgress | None,
    ) -> None:
        self._source, self._question, self._plan = source, question, plan
        self._holdings, self._progress = holdings, progress
        self.met = EditCounts()
        self.distinct = True
        """True if a job number stands for one job only. In accounting the tasks of an array have
        one number together.
        """

    def run(
        self, policy: SimulationPolicy, stage: str, *, change: bool, seed: str | None = None
    ) -> SimulationResult:
        """Return a result without the starts of the jobs: hundreds of copies would keep them all,
        and no caller needs them.
        """
        with self._source() as (trace, extent):
            check_reopens(extent, "name a file rather than a pipe")
            tick = self._progress and ticking(stage, extent, self._progress)
            plan, jobs = self._plan, trace.jobs
            if seed is not None:
                jobs = perturb_workload(jobs, seed)
            self.distinct = trace.names is None
            if change:
                users, groups = _called(trace)
                jobs = edit_workload(
                    jobs,
                    self._question.changes,
                    users,
                    groups,
                    self.met if seed is None else EditCounts(),
                )
                plan = plan._replace(
                    processors=size_with(self._question.machine, trace, plan.processors)
                )
            outcome = simulate_policy(trace._replace(jobs=jobs), policy, plan, self._holdings, tick)
        return outcome._replace(starts=ScheduleStarts())


def _called(trace: FastTrace) -> tuple[NameOf, NameOf]:
    if trace.names is None:
        return str, str
    return trace.names.users.name, trace.names.groups.name


def size_with(machine: MachineChange, trace: FastTrace, processors: int | None) -> int:
    """Return the processors of the changed machine.

    Args:
        machine: nodes and processors to add, or to remove if below 0.
        trace: the workload; its header has the size of a node.
        processors: size before the change; None: as the trace says.

    Raises:
        InvalidInput: the size of a node is unknown, or no processor would be left.
    """
    size = size_of(trace, processors) + machine.processors
    if machine.nodes:
        nodes, all_of_them = trace.header.max_nodes or 0, trace.header.max_procs or 0
        if not nodes or not all_of_them or all_of_them % nodes:
            what = "the trace does not say how many processors a node has (MaxNodes and MaxProcs)"
            raise InvalidInput(
                what, field="add-nodes", remedy="give the number of processors: --add-procs N"
            )
        size += machine.nodes * (all_of_them // nodes)
    if size < 1:
        raise InvalidInput(
            f"a machine of {size} processors", field="add-procs", remedy="take away fewer"
        )
    return size


def _check(changes: WorkloadEdits, counts: EditCounts, *, distinct: bool) -> None:
    """Check that each change applied to a job; else the question was not what the user meant."""
    missing = [
        *(("drop-user", f"user {name}") for name in sorted(changes.users - set(counts.users))),
        *(("drop-group", f"group {name}") for name in sorted(changes.groups - set(counts.groups))),
    ]
    if missing:
        field, who = missing[0]
        raise NotFound(
            f"no job of this trace is {who}'s",
            field=field,
            remedy="name users and groups as the trace does",
        )
    if lost := sorted(set(changes.jobs) - set(counts.jobs)):
        raise NotFound(
            f"there is no job {lost[0]} in this trace",
            field="job",
            remedy="give its number in the trace",
        )
    if distinct and (several := sorted(number for number, jobs in counts.jobs.items() if jobs > 1)):
        what = f"there are {counts.jobs[several[0]]} jobs {several[0]} in this trace"
        raise InvalidInput(
            what, field="job", remedy="give each a number of its own there, in the first column"
        )


def _check_runs(counts: EditCounts, recorded: SimulationResult, other: SimulationResult) -> None:
    """Check that some run of every changed job is simulated, before or after; else nothing could
    differ.
    """
    for job, many in counts.jobs.items():
        before, after = (_left(job, result) for result in (recorded, other))
        if len(before) == len(after) == many:
            raise NotFound(
                f"job {job} is not simulated: {after[0].value}",
                field="job",
                remedy="ask about another one",
            )


def _left(job: int, outcome: SimulationResult) -> list[OmittedJob]:
    """Return the reasons for which runs of a job were omitted, once for each. A part of a run has
    the number of the whole.
    """
    return [
        reason
        for reason, numbers in outcome.omitted.items()
        if reason is not OmittedJob.PART
        for number in numbers
        if number == job
    ]
