"""Answers to requests of commands: each request becomes events of the core, or reads its state."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from signal import SIGKILL
from typing import Any, cast

from fairbank import __version__
from fairbank.core import hostlist
from fairbank.core.errors import FairbankError, Forbidden, InvalidInput, NotFound
from fairbank.core.slurm_numbers import parse_debug_level
from fairbank.jobqueue.arrays import JobSelection, parse_selection
from fairbank.rest.server.log import set_debug_level
from fairbank.unix_users import find_uid, user_name
from fairbank.wlm.controller.checks import LiveFacts, check_cluster
from fairbank.wlm.controller.commands.figures import setting_lines, statistics
from fairbank.wlm.controller.commands.job_changes import ChangeContext, job_update
from fairbank.wlm.controller.commands.job_filter import (
    is_among,
    is_empty,
    own_jobs,
    selected_jobs,
    selection_of,
)
from fairbank.wlm.controller.commands.machine_changes import (
    changed_reservation,
    entity_name,
    node_updates,
    partition_update,
)
from fairbank.wlm.controller.commands.rows import JobRows, rows_answer
from fairbank.wlm.controller.commands.steps.step_answers import Json, StepAnswers
from fairbank.wlm.controller.commands.submissions import StoredFiles, Submitter, build_submission
from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.controller.nodes.job_environment import submission_environment
from fairbank.wlm.controller.nodes.node_link import NodeLinks
from fairbank.wlm.controller.nodes.node_requests import allocation_variables
from fairbank.wlm.controller.state_store import digest
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.job_states import BEGUN
from fairbank.wlm.core.requests.rights import check_operator, check_owner, is_operator
from fairbank.wlm.core.requests.submission import JobAccepted, default_partition
from fairbank.wlm.protocol import commands as cmd
from fairbank.wlm.protocol import messages as wire

ACCOUNT = "account"
STEP_REPORT_SECONDS = 10.0
"""Longest time for which the end of a job waits for the end of the step of its srun."""

_log = logging.getLogger(__name__)


class CommandAnswers:
    """Answers of one controller."""

    def __init__(
        self,
        runner: CoreRunner,
        nodes: NodeLinks,
        *,
        reconfigure: Callable[[], Sequence[str]],
        shut_down: Callable[[], None],
        read_accounts: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Make the answers.

        `reconfigure` reads the settings again, and returns notes on them. `read_accounts` reads the
        accounts of the bank; None without a bank.
        """
        self._runner, self._nodes = runner, nodes
        self._job_rows = JobRows()
        self._reconfigure, self._shut_down = reconfigure, shut_down
        self._read_accounts = read_accounts
        self._steps = steps = StepAnswers(runner, nodes)
        self._methods: Mapping[type, Callable[[Any, Submitter], Awaitable[Json]]] = {
            cmd.SubmitRequest: self._submit,
            cmd.CancelRequest: self._cancel,
            cmd.HoldRequest: self._change(lambda jobs, _: ev.HoldJob(jobs)),
            cmd.UserHoldRequest: self._change(lambda jobs, _: ev.HoldJob(jobs, by_owner=True)),
            cmd.ReleaseRequest: self._change(lambda jobs, _: ev.ReleaseJob(jobs)),
            cmd.SuspendRequest: self._change(lambda jobs, _: ev.SuspendJob(jobs)),
            cmd.ResumeRequest: self._change(lambda jobs, _: ev.ResumeJob(jobs)),
            cmd.RequeueRequest: self._change(
                lambda jobs, request: ev.RequeueJob(jobs, request.held, request.special)
            ),
            cmd.TopRequest: self._change(lambda jobs, _: ev.TopJob(jobs)),
            cmd.NotifyRequest: self._change(lambda jobs, wanted: ev.SendNotice(jobs, wanted.text)),
            cmd.UpdateJobRequest: self._update_job,
            cmd.UpdateNodeRequest: self._update_node,
            cmd.CreateRequest: self._set_entity,
            cmd.UpdateRequest: self._set_entity,
            cmd.DeleteRequest: self._delete_entity,
            cmd.RowsRequest: self._rows,
            cmd.ScriptRequest: self._script,
            cmd.WaitRequest: self._wait,
            cmd.WaitStartRequest: self._wait_start,
            cmd.CompleteRequest: self._complete,
            cmd.PingRequest: self._ping,
            cmd.ConfigRequest: self._config,
            cmd.StatisticsRequest: self._statistics,
            cmd.CheckRequest: self._check,
            cmd.ReconfigureRequest: self._reload,
            cmd.SetDebugRequest: self._set_debug,
            cmd.ShutdownRequest: self._end,
            cmd.CreateStepRequest: steps.create_step,
            cmd.EndStepRequest: steps.end_step,
            cmd.OwnRequest: steps.own,
            cmd.StepStateRequest: steps.step_state,
            cmd.ProcessesRequest: steps.processes,
            cmd.JobOfProcessRequest: steps.job_of_process,
            cmd.WarnProcessRequest: steps.warn_process,
        }

    async def answer(self, request: cmd.AnyRequest, user: Submitter) -> Json:
        """Return the answer to a request. Raises the FairbankError that refuses it."""
        begun, result = time.monotonic(), "ok"
        try:
            return await self._methods[type(request)](request, user)
        except Exception as error:
            result = type(error).__name__
            raise
        finally:
            self._runner.totals.count_request(
                str(type(request).__struct_config__.tag),
                result,
                time.monotonic() - begun,
                user=user.caller,
                of=getattr(request, "of", getattr(request, "entity", "")),
            )

    # ------------------------------------------------------------------ jobs

    async def _submit(self, request: cmd.SubmitRequest, user: Submitter) -> Json:
        try:
            return await self._submit_once(request, user)
        except Forbidden as refused:
            if refused.field != ACCOUNT or self._read_accounts is None:
                raise
            # The project may be newer than what is known of the bank.
            await self._read_accounts()
            return await self._submit_once(request, user)

    async def _submit_once(self, request: cmd.SubmitRequest, user: Submitter) -> Json:
        runner = self._runner
        environment = submission_environment(
            request.environment, request.options, request.directory, request.host
        )
        script = digest(request.script) if request.script else ""
        files = StoredFiles(script, digest(environment))
        body = build_submission(request, user, files, runner.state, runner.now().wall)
        if not body.test_only:
            if request.script:
                await runner.put_content(request.script)
            await runner.put_content(environment)
        accepted = cast("JobAccepted", await runner.request(user.caller, body))
        expected = accepted.expected
        named = tuple(filter(None, body.job.partitions))
        return {
            "job": accepted.number,
            "start": None if expected is None else expected.at,
            "reason": accepted.reason,
            "nodes": [] if expected is None else expected.nodes,
            "cpus": body.job.wanted.cpus,
            "partition": (named or default_partition(runner.state.partitions))[0],
        }

    async def _cancel(self, request: cmd.CancelRequest, user: Submitter) -> Json:
        signal = SIGKILL if request.batch and request.signal is None else request.signal
        body: Callable[[JobSelection], ev.RequestBody] = ev.CancelJob
        # As with Slurm, a job that is killed as a whole is cancelled.
        if signal is not None and (request.batch or signal != SIGKILL):
            number = signal
            target: wire.SignalTarget = (
                "script" if request.batch else "all" if request.full else "steps"
            )
            body = lambda jobs: ev.SendSignal(jobs, number, target)  # noqa: E731
        if request.jobs and is_empty(request.filter):
            return await self._each(user, request.jobs, lambda text: body(parse_selection(text)))
        if is_empty(request.filter):
            raise InvalidInput(
                "no job is named, and no filter", field="jobs", remedy="name a job, or a filter"
            )
        named = [parse_selection(text) for text in request.jobs]
        names = {
            job.name: body(selection_of(job))
            for job in selected_jobs(self._runner.state, request.filter)
            if not job.state.has_ended
            and (not named or is_among(job, named))
            and (job.submission.uid == user.caller.uid or self._is_operator(user))
        }
        return await self._each(user, names, names.__getitem__)

    def _change(
        self, body: Callable[[JobSelection, Any], ev.RequestBody]
    ) -> Callable[[Any, Submitter], Awaitable[Json]]:
        """Return the answer to a request that makes the same change of each of its jobs."""

        async def answer(request: cmd.JobsRequest, user: Submitter) -> Json:
            return await self._each(
                user, request.jobs, lambda text: body(parse_selection(text), request)
            )

        return answer

    async def _each(
        self, user: Submitter, jobs: Iterable[str], body: Callable[[str], ev.RequestBody]
    ) -> Json:
        """Make a request for each of the jobs, and return the results."""
        results = []
        for text in jobs:
            error = None
            try:
                await self._runner.request(user.caller, body(text))
            except FairbankError as refused:
                error = wire.error_message(refused)
            results.append({"job": text, "error": error})
        return {"results": results}

    async def _update_job(self, request: cmd.UpdateJobRequest, user: Submitter) -> Json:
        runner = self._runner

        def body(text: str) -> ev.UpdateJob:
            job = own_jobs(runner.state, text, user.caller)[0]
            context = ChangeContext(job, runner.state, runner.now())
            return job_update(parse_selection(text), request.fields, context)

        return await self._each(user, request.jobs, body)

    async def _script(self, request: cmd.ScriptRequest, user: Submitter) -> Json:
        job = own_jobs(self._runner.state, request.job, user.caller)[0]
        if not job.submission.script:
            raise NotFound(
                f"job {job.name} has no batch script", field="job", remedy="sbatch submits one"
            )
        return {"script": await self._runner.content(job.submission.script)}

    async def _wait(self, request: cmd.WaitRequest, user: Submitter) -> Json:
        return {"status": await self._runner.job_end(request.job)}

    async def _wait_start(self, request: cmd.WaitStartRequest, user: Submitter) -> Json:
        runner, step = self._runner, None
        try:
            async with asyncio.timeout(request.within):
                if request.step is not None:
                    step = await self._steps.create_at_start(request.job, request.step, user)
                job = await runner.job_start(request.job)
        except TimeoutError:
            job = runner.state.jobs[request.job]
        check_owner(runner.state.settings, user.caller, job)
        is_ready = job.state in BEGUN
        if step is not None and (job.run is None or job.run.run != step.run):
            step = None  # of a run that ended before it began
        variables = allocation_variables(runner, job) if is_ready else {}
        return {
            # Its nodes may still be COMPLETING.
            "state": job.state.base if job.state.has_ended else job.state.shown,
            "reason": job.shown_reason(runner.now().wall),
            "environment": variables,
            "step": self._steps.facts_of(step) if step is not None and is_ready else None,
        }

    async def _complete(self, request: cmd.CompleteRequest, user: Submitter) -> Json:
        if request.step is not None:
            await self._wait_for_step(request.job, request.step)
        await self._runner.request(user.caller, ev.CompleteJob(request.job, request.status))
        return {}

    async def _wait_for_step(self, number: int, step: int) -> None:
        """Wait until a step has ended, but for some seconds only: a node may not report it."""
        job = self._runner.state.jobs.get(number)
        if job is not None and job.run is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(STEP_REPORT_SECONDS):
                    await self._runner.step_end(f"{job.run.run}.{step}")

    # ------------------------------------------------------------------ machine

    async def _update_node(self, request: cmd.UpdateNodeRequest, user: Submitter) -> Json:
        for body in node_updates(self._runner.state, request.nodes, request.fields):
            await self._runner.request(user.caller, body)
        return {}

    async def _set_entity(
        self, request: cmd.CreateRequest | cmd.UpdateRequest, user: Submitter
    ) -> Json:
        state, is_new = self._runner.state, isinstance(request, cmd.CreateRequest)
        if request.entity == "partition":
            partition = partition_update(state, request.fields, is_new=is_new)
            await self._runner.request(user.caller, partition)
            return {"name": partition.rules.name}
        check_operator(state.settings, user.caller, "create reservations")
        reservation = changed_reservation(
            state, request.fields, is_new=is_new, user=user.caller.name, now=self._runner.now()
        )
        for name in sorted(reservation.users):
            if find_uid(name) is None:
                raise NotFound(
                    f"there is no user {name[:40]!a}", field="Users", remedy="write Users=NAME,NAME"
                )
        await self._runner.request(user.caller, ev.SetReservation(reservation))
        return {"name": reservation.name}

    async def _delete_entity(self, request: cmd.DeleteRequest, user: Submitter) -> Json:
        body: ev.RequestBody
        name = entity_name(request.entity, request.fields)
        is_partition = request.entity == "partition"
        body = ev.DeletePartition(name) if is_partition else ev.DeleteReservation(name)
        await self._runner.request(user.caller, body)
        return {"name": name}

    # ------------------------------------------------------------------ controller

    async def _rows(self, request: cmd.RowsRequest, user: Submitter) -> Json:
        return await rows_answer(self._runner, self._nodes, self._job_rows, request, user.caller)

    async def _ping(self, request: cmd.PingRequest, user: Submitter) -> Json:
        return {
            "release": __version__,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "up": self._runner.up_seconds,
        }

    async def _config(self, request: cmd.ConfigRequest, user: Submitter) -> Json:
        host, uid = socket.gethostname(), os.getuid()
        return {"settings": setting_lines(self._runner.settings, host, f"{user_name(uid)}({uid})")}

    async def _statistics(self, request: cmd.StatisticsRequest, user: Submitter) -> Json:
        runner = self._runner
        return statistics(runner, runner.now().wall)

    async def _check(self, request: cmd.CheckRequest, user: Submitter) -> Json:
        check_operator(self._runner.state.settings, user.caller, "check the cluster")
        return {"release": __version__, "checks": [*check_cluster(await self._facts())]}

    async def _facts(self) -> LiveFacts:
        """Return the state, and what nodes and accounting know, which is of a moment before."""
        runner, earlier = self._runner, dict(self._runner.state.jobs)
        runner.check_storage()
        await runner.committed()
        recorded = await runner.recorded_runs(earlier)
        names = [*runner.state.configured]
        nodes = dict(zip(names, await asyncio.gather(*map(self._registration, names)), strict=True))
        jobs = runner.settings.jobs
        return LiveFacts(
            state=runner.state,
            earlier=earlier,
            nodes=nodes,
            recorded=recorded,
            now=runner.now(),
            end_seconds=jobs.kill_wait + jobs.unkillable_step_timeout,
            release=__version__,
            boot_time=time.time() - time.clock_gettime(time.CLOCK_BOOTTIME),
        )

    async def _registration(self, node: str) -> wire.Registration | None:
        try:
            answer = await self._nodes.ask(node, wire.PollNode())
        except FairbankError:
            return None
        return answer if isinstance(answer, wire.Registration) else None

    async def _reload(self, request: cmd.ReconfigureRequest, user: Submitter) -> Json:
        check_operator(self._runner.state.settings, user.caller, "change the settings")
        return {"notes": self._reconfigure()}

    async def _set_debug(self, request: cmd.SetDebugRequest, user: Submitter) -> Json:
        check_operator(self._runner.state.settings, user.caller, "change debug levels")
        level = parse_debug_level(request.level, "level")
        if not request.nodes:
            set_debug_level(level)
            _log.info("the debug level is %s", level)
            return {}
        for node in hostlist.expand(request.nodes, field="nodes"):
            await self._nodes.ask(node, wire.SetDebug(level=level))
        return {}

    async def _end(self, request: cmd.ShutdownRequest, user: Submitter) -> Json:
        check_operator(self._runner.state.settings, user.caller, "end the controller")
        self._shut_down()
        return {}

    def _is_operator(self, user: Submitter) -> bool:
        return is_operator(self._runner.state.settings, user.caller)
