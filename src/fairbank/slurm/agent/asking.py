"""A running agent is asked how it fares, through its control socket."""

from __future__ import annotations

from typing import Any

from fairbank.core.errors import Unavailable
from fairbank.rest.client import Client, parse_address
from fairbank.slurm.agent.settings import read_agent_settings, settings_file


def status_of(config: str | None) -> dict[str, Any]:
    """What the agent of these settings (None: of the usual ones) tells of itself. Raises Unavailable when none answers."""
    where = read_agent_settings(settings_file(config)).control.socket
    try:
        return Client(parse_address(f"unix:{where}")).get("/status")
    except Unavailable as silent:
        raise Unavailable(
            f"no agent answers at {where}",
            field="control.socket",
            remedy="start it with: fairbank agent; or name its settings: --config",
        ) from silent
