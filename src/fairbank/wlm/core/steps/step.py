"""Steps of a running job: what is requested, what a step has of its job, and its record."""

from __future__ import annotations

from typing import Literal

import msgspec

from fairbank.cluster.job import Run
from fairbank.cluster.node import Gpus
from fairbank.wlm.core.jobs import Moment, Owner, WlmRun
from fairbank.wlm.protocol.messages import RunUsage

StepDistribution = Literal["block", "cyclic", "plane", "arbitrary"]


class StepRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request of a step.

    `nodes` None: as many as its tasks can use; at most `nodes_max`, if there are so many. `named`
    are nodes that it must have, by name or by number within the job, with distribution "arbitrary"
    the node of each task. `relative` is the number of its first node within the job. `plane` is the
    number of tasks that stay together. `memory` is that of each node, in MiB, as `memory_per_cpu`;
    the job must have it, and its steps share it.
    `exact`: it takes the cores that it asks for, and not all of its nodes. `overlap`: it shares
    them with other steps. `overcommit`: a core may have several tasks. `gpus` are those of each
    node; None: all that the job has there, unless `gpus_per_task` or `total_gpus` says how many;
    of the latter, each has at most `tasks_per_gpu`. With each GPU of a node go `cpus_per_gpu`.
    `key` is that of the request of srun, which may come again; empty: it has none.
    """

    name: str = ""
    tasks: int | None = None
    cpus_per_task: int = 1
    tasks_per_node: int | None = None
    nodes: int | None = None
    nodes_max: int | None = None
    named: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    relative: int | None = None
    distribution: StepDistribution = "block"
    plane: int = 1
    memory: int = 0
    memory_per_cpu: int = 0
    exact: bool = False
    overlap: bool = False
    overcommit: bool = False
    gpus: tuple[Gpus, ...] | None = None
    gpus_per_task: tuple[Gpus, ...] = ()
    total_gpus: Gpus | None = None
    tasks_per_gpu: int | None = None
    cpus_per_gpu: int = 0
    submit_line: str = ""
    key: str = ""

    @property
    def shares(self) -> bool:
        """True if it may have cores that other steps have."""
        return self.overlap or self.overcommit


class StepGrant(msgspec.Struct, frozen=True):
    """Tasks, cores and GPUs of a step on one node. Each task has its part of the cores, in their
    order; with `overcommit` all tasks have all of them. So it is with the GPUs of a step that
    requests them by task; else all tasks have all.
    """

    node: str
    ranks: tuple[int, ...]
    cores: tuple[int, ...]
    gpus: tuple[int, ...] = ()


class WlmStep(msgspec.Struct, frozen=True, kw_only=True):
    """Step that has cores.

    started    time of its allocation
    left       nodes whose tasks have not ended
    ended      end of the tasks that ended last, of the nodes that have reported; None: none has
    status     status of wait(2): that of a signal, else the highest of its tasks so far
    end        state in which it will end, whatever its tasks report: CANCELLED by a request, FAILED
               because a node or its srun lost it; empty: that of its tasks
    usage      that of the nodes that have ended
    paused     seconds of suspensions that its run had had before
    srun       process that follows it; None: it is not known
    """

    run: Run
    number: int
    uid: int
    request: StepRequest
    grants: tuple[StepGrant, ...]
    started: Moment
    left: tuple[str, ...]
    ended: Moment | None = None
    status: int = 0
    end: str = ""
    canceller: int | None = None
    usage: RunUsage = RunUsage()
    paused: int = 0
    srun: Owner | None = None

    @property
    def key(self) -> str:
        """Key of its row."""
        return f"{self.run}.{self.number}"

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(grant.node for grant in self.grants)

    def ran(self, run: WlmRun, now: Moment) -> int:
        """Return for how many seconds it has run, as a step of its run."""
        return max(now.mono - self.started.mono - self.suspended(run, now), 0)

    def suspended(self, run: WlmRun, now: Moment) -> int:
        """Return for how many seconds it was suspended with its run."""
        return run.paused_until(now) - self.paused

    @property
    def tasks(self) -> int:
        """Number of its tasks."""
        return sum(len(grant.ranks) for grant in self.grants)


class EndedStep(msgspec.Struct, frozen=True, kw_only=True):
    """Accounting record of a step. `ended` is in seconds since 1970, `elapsed` in seconds, without
    those for which it was `suspended`. `step.left` are the nodes whose usage it does not have.
    """

    step: WlmStep
    state: str
    ended: int
    elapsed: int
    suspended: int = 0

    def with_usage(self, usage: RunUsage) -> EndedStep:
        """Return the record with the usage of another node."""
        step = msgspec.structs.replace(self.step, usage=self.step.usage.with_node(usage))
        return msgspec.structs.replace(self, step=step)


class StepUsage(msgspec.Struct, frozen=True):
    """Usage of a step on a node that reported it after the end of the step was recorded.

    `step` is the key of the step.
    """

    step: str
    node: str
    usage: RunUsage
