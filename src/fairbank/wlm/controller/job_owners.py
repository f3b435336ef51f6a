"""Owners of jobs: processes of srun and salloc, and those that are gone.

A process is known by its number, its start and the boot. So it may be stopped for any time, and the
controller may be started again meanwhile: only a process that has ended is gone.
"""

from __future__ import annotations

import asyncio
import time
from functools import cache

from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.core.events import OwnerLost
from fairbank.wlm.core.job_states import JobState
from fairbank.wlm.core.jobs import Owner
from fairbank.wlm.stepd.processes import boot_id, read_process

_PAUSE_SECONDS = 10.0
"""Longest pause between two looks for the owners."""
_LOOKS = 3
"""Looks within InactiveLimit, as Slurm pings."""

_boot_id = cache(boot_id)


def process_owner(pid: int) -> Owner | None:
    """Return a process as an owner; None if this host does not show it."""
    if not pid:
        return None
    process = read_process(pid)
    return Owner(pid, 0 if process is None else process.start, _boot_id())


def is_gone(owner: Owner) -> bool:
    """Return True if a process has ended."""
    process = read_process(owner.pid)
    is_here = process is not None and process.start == owner.start and not process.is_zombie
    return not is_here or owner.boot != _boot_id()


class OwnerWatch:
    """Watch over the owners of the jobs.

    Invariant: `_gone` has the monotonic time since when the owner of a job is known to be gone, by
    the number of the job.
    """

    def __init__(self, runner: CoreRunner) -> None:
        self._runner = runner
        self._gone: dict[int, float] = {}

    async def run(self) -> None:
        """Tell the core which owners are gone for InactiveLimit, until cancelled."""
        while True:
            limit = self._runner.settings.jobs.inactive_limit
            if limit:
                self._look(time.monotonic(), limit)
            await asyncio.sleep(min(limit / _LOOKS, _PAUSE_SECONDS) if limit else _PAUSE_SECONDS)

    def _look(self, now: float, limit: int) -> None:
        gone = {
            job.number: job.owner
            for job in self._runner.state.jobs.values()
            if job.owner is not None
            and not job.state.has_ended
            and job.state is not JobState.SUSPENDED
            and is_gone(job.owner)
        }
        # A suspension, or a new owner, starts the time again.
        self._gone = {number: self._gone.get(number, now) for number in gone}
        for number, owner in gone.items():
            if now - self._gone[number] >= limit:
                self._runner.handle(OwnerLost(number, owner))
