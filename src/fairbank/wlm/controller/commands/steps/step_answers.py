"""Answers to requests of commands about steps and processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from fairbank.core.errors import Conflict, FairbankError, InvalidInput, NotFound, Unavailable
from fairbank.wlm.controller.commands.job_filter import own_jobs
from fairbank.wlm.controller.commands.steps.step_requests import build_step
from fairbank.wlm.controller.commands.submissions import Submitter
from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.controller.job_owners import process_owner
from fairbank.wlm.controller.nodes.job_environment import to_entries
from fairbank.wlm.controller.nodes.node_link import NodeLinks
from fairbank.wlm.controller.nodes.node_requests import allocation_variables
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.jobs import WlmJob
from fairbank.wlm.core.steps.step import EndedStep, WlmStep
from fairbank.wlm.protocol import commands as cmd
from fairbank.wlm.protocol import messages as wire
from fairbank.wlm.stepd.processes import read_process

Json = Mapping[str, Any]


class StepAnswers:
    """Answers about steps and processes."""

    def __init__(self, runner: CoreRunner, nodes: NodeLinks) -> None:
        self._runner, self._nodes = runner, nodes

    async def create_at_start(
        self, number: int, request: cmd.CreateStepRequest, user: Submitter
    ) -> WlmStep | None:
        """Create a step when its job starts. Return None if it cannot be created then.

        Without a Prolog the nodes need not say first that the job has begun.
        """
        runner = self._runner
        job = await runner.job_start(number, is_early=not runner.settings.jobs.prolog)
        variables = to_entries(allocation_variables(runner, job))
        environment = b"\0".join((request.environment, *variables))
        request = msgspec.structs.replace(request, job=number, environment=environment)
        try:
            return await self._create(request, user)
        except FairbankError:
            return None

    async def create_step(self, request: cmd.CreateStepRequest, user: Submitter) -> Json:
        return self.facts_of(await self._create(request, user))

    async def _create(self, request: cmd.CreateStepRequest, user: Submitter) -> WlmStep:
        """Create a step, or return the one that the same request has created."""
        state = self._runner.state
        body = build_step(request, process_owner(user.pid), state)
        job = state.jobs[request.job]
        running = () if job.run is None else state.steps_of(job.run.run)
        # First: one that ends now must not be missed by the core and among those that have ended.
        is_known = any(step.request.key == request.key for step in running)
        if request.repeated and not is_known:
            ended = await self._ended_step(request, user)
            if ended is not None:
                return ended
        step = cast("WlmStep", await self._runner.request(user.caller, body))
        self._check_registered(step)
        return step

    async def _ended_step(self, request: cmd.CreateStepRequest, user: Submitter) -> WlmStep | None:
        """Return the step that was created by the same request, if it has ended."""
        jobs = own_jobs(self._runner.state, str(request.job), user.caller)
        await self._runner.committed()
        ended = await self._runner.ended_steps([job.run.run for job in jobs if job.run is not None])
        steps = (_without_nodes(one) for one in ended)
        return next((step for step in steps if step.request.key == request.key), None)

    def _check_registered(self, step: WlmStep) -> None:
        """Raise Unavailable if the directory of a step on one of its nodes is not known yet."""
        for node in step.left:
            if node not in self._nodes.registrations:
                raise Unavailable(
                    f"node {node} of step {step.run.job_id}.{step.number} has not registered",
                    field="busy",
                    remedy="try again in some seconds; sinfo shows the nodes",
                )

    def facts_of(self, step: WlmStep) -> Json:
        """Return what srun must know to connect to the daemons of a step."""
        registered = self._nodes.registrations
        nodes = [
            {
                "node": grant.node,
                "ranks": grant.ranks,
                "directory": wire.step_directory(
                    registered[grant.node].spool, step.run, step.number
                ),
                "is_running": grant.node in step.left,
            }
            for grant in step.grants
            if grant.node in registered
        ]
        return {"job": step.run.job_id, "step": step.number, "nodes": nodes}

    async def step_state(self, request: cmd.StepStateRequest, user: Submitter) -> Json:
        jobs = own_jobs(self._runner.state, str(request.job), user.caller)
        runs = [job.run.run for job in jobs if job.run is not None]
        running = [step for run in runs for step in self._runner.state.steps_of(run)]
        matching = [step for step in running if request.step in (None, step.number)]
        if len(matching) == 1:
            (step,) = matching
            self._check_registered(step)
            return {**self.facts_of(step), "state": "RUNNING", "status": step.status}
        if matching:
            names = ", ".join(f"{step.run.job_id}.{step.number}" for step in matching[:20])
            raise Conflict(
                f"job {request.job} has {len(matching)} steps that run",
                field="step",
                remedy=f"name one of {names}",
            )
        await self._runner.committed()
        for ended in await self._runner.ended_steps(runs):
            if ended.step.number == request.step:
                step = _without_nodes(ended)
                return {**self.facts_of(step), "state": ended.state, "status": step.status}
        what = "step that runs" if request.step is None else f"step {request.step}"
        raise NotFound(
            f"job {request.job} has no {what}", field="step", remedy="sacct lists its steps"
        )

    async def end_step(self, request: cmd.EndStepRequest, user: Submitter) -> Json:
        body = ev.EndStepOf(request.job, request.step, request.signal, request.lost_node)
        await self._runner.request(user.caller, body)
        return {}

    async def own(self, request: cmd.OwnRequest, user: Submitter) -> Json:
        process, owner = read_process(user.pid), process_owner(user.pid)
        parent = None if process is None else process_owner(process.parent)
        if parent is not None and owner is not None:
            body = ev.ChangeOwner(request.job, parent, owner)
            await self._runner.request(user.caller, body)
        return {}

    async def processes(self, request: cmd.ProcessesRequest, user: Submitter) -> Json:
        """Return the processes on the nodes that are connected.

        Beside its steps, a node of a job has the script of the job or a process that waits.
        """
        processes: list[Json] = []
        for job in own_jobs(self._runner.state, request.job, user.caller):
            run = _run_of(job)
            for node in run.left:
                try:
                    answer = await self._nodes.ask(node, wire.ListProcesses(run=run.run))
                except Unavailable:
                    continue
                if not isinstance(answer, wire.ProcessList):
                    continue
                has_script = bool(job.submission.script) and node == run.batch_node
                for one in answer.processes:
                    is_task = has_script or one.step is not None
                    processes.append(
                        {
                            "pid": one.pid,
                            "job": job.number,
                            "step": _step_name(one.step, has_script=has_script),
                            "local": one.local if is_task else None,
                            "rank": one.rank if is_task else None,
                        }
                    )
        return {"processes": processes}

    async def job_of_process(self, request: cmd.JobOfProcessRequest, user: Submitter) -> Json:
        _, holder = await self._find(request.pid)
        return self._job_and_end(holder)

    async def warn_process(self, request: cmd.WarnProcessRequest, user: Submitter) -> Json:
        node, holder = await self._find(request.pid)
        if holder.run is None:
            raise NotFound(
                f"process {request.pid} belongs to no job",
                field="pid",
                remedy="call it in a job, or name a process of one",
            )
        own_jobs(self._runner.state, str(holder.run.job_id), user.caller)
        message = wire.WarnProcess(
            run=holder.run, pid=request.pid, number=request.signal, seconds=request.before
        )
        await self._nodes.ask(node, message)
        return self._job_and_end(holder)

    async def _find(self, pid: int) -> tuple[str, wire.JobOfProcess]:
        """Return the node and the run of a process; none if it belongs to no job."""
        for node in self._runner.state.configured:
            try:
                answer = await self._nodes.ask(node, wire.FindJob(pid=pid))
            except FairbankError:
                continue
            if isinstance(answer, wire.JobOfProcess) and answer.run is not None:
                return node, answer
        return "", wire.JobOfProcess()

    def _job_and_end(self, holder: wire.JobOfProcess) -> Json:
        rest = holder.seconds
        ends = None if rest is None else self._runner.now().wall + round(rest)
        return {"job": None if holder.run is None else str(holder.run.job_id), "ends": ends}


def _without_nodes(ended: EndedStep) -> WlmStep:
    """Return a step that has ended. Its nodes may not have reported that."""
    return msgspec.structs.replace(ended.step, left=())


def _step_name(step: int | None, *, has_script: bool) -> str:
    if step is None:
        return "batch" if has_script else "extern"
    return str(step)


def _run_of(job: WlmJob) -> Any:
    if job.run is None or job.run.end:
        raise InvalidInput(
            f"job {job.name} is not running", field="job", remedy="squeue -t R lists those that run"
        )
    return job.run
