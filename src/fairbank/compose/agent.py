"""The agent beside slurmctld."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import uvloop

from fairbank.rest.server.log import log_to
from fairbank.service.settings import Log
from fairbank.slurm.agent.serving import Agent
from fairbank.slurm.agent.settings import read_agent_settings, settings_file


def run(config: str | None, *, ready: Callable[[Sequence[str]], None]) -> int:
    """Run the agent until it is told to stop."""
    settings = read_agent_settings(settings_file(config))
    log_to(sys.stderr, Log(settings.log))
    uvloop.run(Agent(settings).run(ready))
    return 0
