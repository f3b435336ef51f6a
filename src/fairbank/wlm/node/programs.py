"""Prolog and Epilog: programs of the administrator that run before and after each job."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from fairbank.cluster.job import Run
from fairbank.wlm.stepd.task import MARK

FAILED = 127 << 8
"""Status, as of wait(2), of a program that could not be executed."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_log = logging.getLogger(__name__)


def program_environment(run: Run, node: str, directory: Path) -> Mapping[str, str]:
    """Return the environment of Prolog and Epilog. Nothing in it comes from the job's owner."""
    return {
        "PATH": _PATH,
        "SLURM_CLUSTER_NAME": run.cluster,
        "SLURM_JOB_ID": str(run.job_id),
        "SLURM_JOBID": str(run.job_id),
        "SLURM_JOB_UID": str(os.getuid()),
        "SLURM_RESTART_COUNT": str(run.restart),
        "SLURMD_NODENAME": node,
        MARK: str(directory),
    }


async def run_program(program: str, environment: Mapping[str, str], timeout_seconds: float) -> int:
    """Run a program to its end, and return its status as wait(2) gives it.

    After the timeout its process group is killed. A name that is empty stands for no program.
    """
    if not program:
        return 0
    try:
        process = await asyncio.create_subprocess_exec(
            program, env=environment, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
        )
    except OSError as error:
        _log.error("cannot execute %s: %s", program, error)
        return FAILED
    try:
        async with asyncio.timeout(timeout_seconds):
            code = await process.wait()
    except TimeoutError:
        _log.error("%s took longer than %g s and was killed", program, timeout_seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        code = await process.wait()
    return -code if code < 0 else code << 8
