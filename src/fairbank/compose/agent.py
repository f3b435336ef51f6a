"""Agent next to slurmctld, with the periodic jobs that need Slurm's commands."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

import uvloop

from fairbank.agent.daemon import Agent, PeriodicJob
from fairbank.agent.settings import AgentSettings, read_agent_settings, settings_file
from fairbank.rest.client import Client, parse_address
from fairbank.rest.server.log import log_to
from fairbank.service.settings import Log
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.releasing import Releaser
from fairbank.slurm.site_factor_writer import TableWriter


def run(config: str | None, *, ready: Callable[[Sequence[str]], None]) -> int:
    """Run the agent until it is stopped by a signal."""
    settings = read_agent_settings(settings_file(config))
    log_to(sys.stderr, Log(settings.log))
    uvloop.run(Agent(settings, slurm_jobs(settings)).run(ready))
    return 0


def slurm_jobs(settings: AgentSettings) -> dict[str, PeriodicJob]:
    """Return the jobs that the settings ask for. Raises Trouble if credentials cannot be read."""
    jobs: dict[str, PeriodicJob] = {}
    if settings.site_factor.path:
        writer = TableWriter(settings)
        jobs["site_factor"] = PeriodicJob(settings.site_factor.refresh, writer.write, writer.status)
    if settings.release.when_paid:
        client = Client(
            parse_address(settings.bank.server, field="bank.server"),
            signer=settings.release.signer(settings.bank),
            timeout_seconds=settings.bank.timeout,
        )
        releaser = Releaser(client, SlurmCommands(), settings.release.again)
        jobs["release"] = PeriodicJob(
            settings.release.every,
            lambda: releaser.look(time.monotonic()),
            releaser.status,
            waits_first=True,
        )
    return jobs
