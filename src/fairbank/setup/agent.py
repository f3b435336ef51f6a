"""Periodic jobs of the agent that need Slurm's commands."""

from __future__ import annotations

import time

from fairbank.agent.daemon import PeriodicJob
from fairbank.rest.client import Client, parse_address
from fairbank.slurm.agent_settings import SlurmAgentSettings
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.held_jobs import Releaser
from fairbank.slurm.site_factor import TableWriter


def slurm_jobs(settings: SlurmAgentSettings) -> dict[str, PeriodicJob]:
    """Return the jobs of the settings. Raises FairbankError if credentials cannot be read."""
    jobs: dict[str, PeriodicJob] = {}
    if settings.site_factor.path:
        writer = TableWriter(settings)
        jobs["site_factor"] = PeriodicJob(settings.site_factor.refresh, writer.write, writer.status)
    if settings.release.when_paid:
        client = Client(
            parse_address(settings.bank.server, field="bank.server"),
            signer=settings.bank.signer(settings.release.token_file),
            timeout_seconds=settings.bank.timeout,
        )
        releaser = Releaser(client, SlurmCommands(), settings.release.again)
        jobs["release"] = PeriodicJob(
            settings.release.every,
            lambda: releaser.run_round(time.monotonic()),
            releaser.status,
            waits_first=True,
        )
    return jobs
