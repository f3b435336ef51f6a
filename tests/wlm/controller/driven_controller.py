"""Program of the tests: the controller, with requests to `CoreRunner` as lines of JSON.

`python -m tests.wlm.controller.driven_controller DIRECTORY` prints `ready`, then a line with number
and answer for each request.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import FairbankError
from fairbank.core.submission.arrays import parse_array
from fairbank.jobqueue.arrays import parse_selection
from fairbank.rest.server.log import log_to
from fairbank.scheduling.pending_job import PendingJob
from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.controller.daemon import ControllerDaemon
from fairbank.wlm.controller.state_store import RunFilter
from fairbank.wlm.core.events import Caller, CancelJob, RequeueJob, SubmitJob
from fairbank.wlm.core.jobs import Submission

ME = Caller(os.getuid(), "alice")


async def main(directory: Path) -> None:
    log_to(sys.stderr)
    daemon = ControllerDaemon(directory)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    def ready() -> None:
        print("ready", flush=True)
        daemon.tasks.start(answer_all(daemon, reader))

    await daemon.run(ready)


async def answer_all(daemon: ControllerDaemon, reader: asyncio.StreamReader) -> None:
    """Answer each line when its request is done; the end of the input ends nothing."""
    while line := await reader.readline():
        daemon.tasks.start(answer(daemon.runner, json.loads(line)))


async def answer(runner: CoreRunner, request: dict[str, Any]) -> None:
    number = request.pop("number")
    try:
        result: Any = await carry_out(runner, request)
    except FairbankError as error:
        result = {"error": type(error).__name__, "message": error.message}
    print(msgspec.json.encode([number, result]).decode(), flush=True)


async def carry_out(runner: CoreRunner, request: dict[str, Any]) -> Any:
    match request.pop("do"):
        case "submit":
            return await runner.request(ME, await submission(runner, request))
        case "cancel":
            return await runner.request(ME, CancelJob(parse_selection(request["job"])))
        case "requeue":
            return await runner.request(ME, RequeueJob(parse_selection(request["job"])))
        case "wait":
            return await runner.job_end(request["job"])
        case "jobs":
            return {
                job.name: [job.state.value, job.shown_reason(runner.now().wall)]
                for job in runner.state.jobs.values()
            }
        case "nodes":
            return {
                name: [status.condition.value, status.reason]
                for name, status in runner.state.nodes.items()
            }
        case "connected":
            return sorted(runner.state.registered)
        case "runs":
            runs = await runner.ended_runs(RunFilter(jobs=request.get("jobs", ()), limit=100_000))
            return [run._asdict() for run in runs]
        case "settings":
            return [runner.settings.jobs.kill_wait, [*runner.state.partitions]]
        case "failure":
            return runner.failure
    raise AssertionError(request)


async def submission(runner: CoreRunner, request: dict[str, Any]) -> SubmitJob:
    """Return a submission: `script`, `array`, `nodes`, fields of the submission and of the job."""
    about = {name: request.pop(name) for name in Submission.__struct_fields__ if name in request}
    script = await runner.put_content(f"#!/bin/sh\n{about.pop('script')}".encode())
    environment = await runner.put_content(b"PATH=" + os.fsencode(os.environ["PATH"]))
    array = request.pop("array", None)
    wanted = ResourceRequest(
        nodes=request.pop("nodes", 1), memory_per_node=10, tasks=request.pop("tasks", None)
    )
    return SubmitJob(
        job=PendingJob(
            number=0, user=ME.name, partitions=("",), priority=0, wanted=wanted, **request
        ),
        submission=Submission(
            **{
                "name": "train",
                "uid": ME.uid,
                "gid": os.getgid(),
                "script": script,
                "environment": environment,
                **about,
            }
        ),
        array=None if array is None else parse_array(array, field="array"),
    )


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
