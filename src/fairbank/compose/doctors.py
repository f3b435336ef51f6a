"""Looking for what is wrong (cli.works.Doctors)."""

from __future__ import annotations

import os
from pathlib import Path

from fairbank.agent.control import agent_status
from fairbank.agent.settings import read_agent_settings, settings_file
from fairbank.compose.settings import settings_of
from fairbank.core.check import HealthCheck, run_check
from fairbank.rest.client import Client, parse_address
from fairbank.rest.server.open_files import demand_enough
from fairbank.rest.sign_in.keyfile import read_secret
from fairbank.rest.sign_in.munge import LIBRARY, Munge
from fairbank.service.clock import SystemClock
from fairbank.service.ops.doctor import examine
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.compare.health import AgentHealth
from fairbank.slurm.doctor import Doctor
from fairbank.slurm.site import read_site
from fairbank.store.contract import ProgressCallback


class Doctors:
    """One for a bank on this host, one for what stands between a bank and Slurm."""

    def of_bank(
        self, config: str | None, at_work: ProgressCallback | None = None
    ) -> list[HealthCheck]:
        """Look at everything that may be wrong with this bank."""
        settings = settings_of(config)
        socket = f"unix:{settings.server.socket}"
        return [
            run_check(
                "the secret is there, and nobody else's to read",
                lambda: read_secret(Path(settings.secret_file)),
            ),
            *examine(settings, SystemClock(), at_work),
            run_check(
                f"the server answers on {socket}",
                lambda: Client(parse_address(socket)).get("/health", {}),
            ),
            run_check(
                "the open files that the server may have",
                lambda: demand_enough(Path(settings.server.socket)),
            ),
        ]

    def beside_slurm(
        self, client: Client, cluster: str | None, *, agent: str | None, site: str | None
    ) -> list[HealthCheck]:
        """Look at everything that may be wrong between the Slurm of this host and the bank that `client` asks."""

        def the_agent() -> AgentHealth:
            settings = read_agent_settings(settings_file(agent))
            patience = max(
                terms.patience for terms in (settings.terms, *settings.partitions.values())
            )
            status = agent_status(agent)
            return AgentHealth(
                socket=settings.plugin.socket,
                slurm_users=settings.plugin.uids(),
                patience=patience,
                status=status,
            )

        def munge(socket: str | None) -> None:
            munged = Munge(socket=socket, library=os.environ.get("FAIRBANK_LIBMUNGE", LIBRARY))
            munged.decode(munged.encode(b"fairbank doctor"))

        return list(
            Doctor(
                SlurmCommands(), client, agent=the_agent, munge=munge, site=read_site(site)
            ).examine(cluster)
        )
