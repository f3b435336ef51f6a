"""Answers to requests of commands about steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from fairbank.core.errors import NotFound
from fairbank.wlm.controller.commands.job_filter import own_jobs
from fairbank.wlm.controller.commands.steps.step_requests import build_step
from fairbank.wlm.controller.commands.submissions import Submitter
from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.controller.nodes.node_link import NodeLinks
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.steps.step import WlmStep
from fairbank.wlm.protocol import commands as cmd
from fairbank.wlm.protocol import messages as wire

Json = Mapping[str, Any]


class StepAnswers:
    """Answers about the steps of one controller, as part of CommandAnswers."""

    def __init__(self, runner: CoreRunner, nodes: NodeLinks) -> None:
        self._runner, self._nodes = runner, nodes
        self.methods: Mapping[type, Callable[[Any, Submitter], Awaitable[Json]]] = {
            cmd.CreateStepRequest: self._create_step,
            cmd.EndStepRequest: self._end_step,
            cmd.StepStateRequest: self._step_state,
        }

    async def _create_step(self, request: cmd.CreateStepRequest, user: Submitter) -> Json:
        body = build_step(request, self._runner.state)
        step = cast("WlmStep", await self._runner.request(user.caller, body))
        registered = self._nodes.registrations
        return {
            "step": step.number,
            "nodes": [
                {
                    "node": grant.node,
                    "ranks": grant.ranks,
                    "directory": wire.step_directory(
                        registered[grant.node].spool, step.run, step.number
                    ),
                }
                for grant in step.grants
            ],
        }

    async def _step_state(self, request: cmd.StepStateRequest, user: Submitter) -> Json:
        (job,) = own_jobs(self._runner.state, str(request.job), user.caller)
        runs = [] if job.run is None else [job.run.run]
        for step in map(self._runner.state.steps_of, runs):
            if any(one.number == request.step for one in step):
                return {"state": "RUNNING", "status": 0}
        await self._runner.committed()
        for ended in await self._runner.ended_steps(runs):
            if ended.step.number == request.step:
                return {"state": ended.state, "status": ended.step.status}
        raise NotFound(
            f"job {request.job} has no step {request.step}",
            field="step",
            remedy="sacct lists its steps",
        )

    async def _end_step(self, request: cmd.EndStepRequest, user: Submitter) -> Json:
        body = ev.EndStepOf(request.job, request.step, request.signal)
        await self._runner.request(user.caller, body)
        return {}
