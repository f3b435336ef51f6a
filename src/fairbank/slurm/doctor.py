"""Health check of a Slurm and its bank, from a host of Slurm. `compare.health` judges the
results.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from fairbank.cluster.partition import Cluster
from fairbank.core.check import HealthCheck, run_check
from fairbank.core.errors import FairbankError, Forbidden, NotFound, Unavailable
from fairbank.core.time import parse_instant
from fairbank.rest.client import Client
from fairbank.slurm.bank import BankClient
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.compare import health, plugin_files
from fairbank.slurm.compare.import_plan import SlurmMachine
from fairbank.slurm.conf_file import conf_path, conf_settings, stated
from fairbank.slurm.conf_folder import find_scripts, find_table
from fairbank.slurm.parsers.scontrol import parameters, slurm_uid
from fairbank.slurm.parsers.version import acquaintance
from fairbank.slurm.policy_file import SIZE_MAX, heading
from fairbank.slurm.site import Site

T = TypeVar("T")

AWAY = "start it: systemctl start slurmctld; its log says why it ended. Until then the rest is judged by slurm.conf"


class Doctor:
    """One Slurm, one bank, and what stands between them on this host.

    `agent` tells of the agent; `munge` makes a credential at a socket (None: the usual one) and reads it. Both raise FairbankError.
    """

    def __init__(
        self,
        slurm: SlurmCommands,
        client: Client,
        *,
        agent: Callable[[], health.AgentHealth],
        munge: Callable[[str | None], None],
        site: Site,
    ) -> None:
        self._slurm, self._client, self._agent, self._munge, self._site = (
            slurm,
            client,
            agent,
            munge,
            site,
        )

    def examine(self, cluster: str | None) -> Iterator[HealthCheck]:
        """Look at everything. What cannot be asked is told, and the rest is looked at all the same: without slurmctld by its slurm.conf."""
        checks: list[HealthCheck] = []
        version = self._asked(checks, "Slurm's commands answer", lambda: self._slurm.version)
        config = self._asked(checks, "slurmctld answers", self._told)
        alive = config is not None
        if config is None:
            config = (
                self._asked(checks, "slurm.conf is read", lambda: stated(self._slurm.conf)) or {}
            )
        yield from checks
        name = config.get("ClusterName", "")
        if cluster is not None and name not in ("", cluster):
            yield HealthCheck(
                f"this host belongs to cluster {name}, not {cluster}",
                False,
                "ask on a host of its own",
            )
            return
        if version is not None:
            yield HealthCheck(
                f"Slurm {version} of cluster {name or cluster or '(unknown)'}: {acquaintance(version)}",
                True,
            )
        yield from self._of_slurm(config, name or cluster, alive=alive)
        yield from self._of_the_agent(config)
        yield from self._of_the_policy(config)

    def _told(self) -> health.Config:
        """What slurmctld tells of its settings. Raises Unavailable with what to do about it."""
        try:
            return self._slurm.config
        except Unavailable as away:
            raise Unavailable(away.message, field=away.field, remedy=AWAY) from away

    def _of_slurm(
        self, config: health.Config, name: str | None, *, alive: bool
    ) -> Iterator[HealthCheck]:
        checks: list[HealthCheck] = []
        if (
            alive
            and (there := self._asked(checks, "slurmctld tells the time", self._slurm.clock))
            is not None
        ):
            checks.append(health.clocks(int(time.time()), there, "slurmctld"))
        if config:
            checks.append(health.signing(config))
        if config.get("AuthType", "auth/munge") == "auth/munge":
            checks.append(
                run_check(
                    "munged makes and reads credentials on this host",
                    lambda: self._munge(munge_socket(config)),
                )
            )
        known = self._known(checks, name)
        machine = (
            self._asked(
                checks,
                "partitions, nodes and QOS are read",
                lambda: self._machine(config, name or ""),
            )
            if alive
            else None
        )
        if machine is not None:
            checks += [
                *health.accounting(config, machine),
                *health.weighing(machine, known),
                *health.limits(machine.places),
            ]
            checks += [] if known is None else health.prices(machine, known)
        elif config and not alive:
            checks += health.accounting(config, SlurmMachine(cluster=name or "", places=()))
            checks.append(run_check("slurmdbd answers", self._slurm.qualities))
        yield from checks

    def _known(self, checks: list[HealthCheck], name: str | None) -> Cluster | None:
        """The bank's prices."""
        answer = self._asked(checks, "the bank answers", lambda: self._client.get("/whoami"))
        if answer is None:
            return None
        checks.append(health.clocks(int(time.time()), parse_instant(answer["as_of"]), "the bank"))
        return self._asked(
            checks, "the bank tells its prices", lambda: BankClient(self._client).cluster(name)
        )

    def _of_the_agent(self, config: health.Config) -> Iterator[HealthCheck]:
        checks: list[HealthCheck] = []
        by_script = health.asks_by_script(config)
        agent = None if by_script else self._asked(checks, "the agent answers", self._agent)
        yield from checks
        if config:
            yield from health.plugins(config, agent)
        if agent is not None:
            yield from health.agents(config, agent, int(time.time()))
        yield from plugin_files.scripts(find_scripts(config))
        if agent is not None and config:
            yield from self._of_the_site_factor(config, agent.status.get("site_factor"))

    def _of_the_site_factor(
        self, config: health.Config, status: Mapping[str, Any] | None
    ) -> Iterator[HealthCheck]:
        checks: list[HealthCheck] = []
        settings = self._asked(
            checks, "slurm.conf is read", lambda: conf_settings(conf_path(config))
        )
        yield from checks
        if settings is not None:
            table = find_table(plugin_files.parameter(settings))
            yield from plugin_files.site_factor(config, settings, status, table, int(time.time()))

    def _of_the_policy(self, config: health.Config) -> Iterator[HealthCheck]:
        checks: list[HealthCheck] = []
        for path in filter(None, (self._site.policy, self._site.public_policy)):
            if policy := self._asked(
                checks, f"the submission policy {path}", partial(self._policy, config, path)
            ):
                checks += health.policies(policy, int(time.time()))
        yield from checks

    def _machine(self, config: health.Config, name: str) -> SlurmMachine:
        flags = config.get("PriorityFlags", "")
        places, nodes, qualities = (
            self._slurm.places(),
            self._slurm.nodes(),
            self._slurm.qualities(),
        )
        if wrong := (*places.unreadable, *nodes.unreadable, *qualities.unreadable):
            raise NotFound(
                f"cannot read {wrong[0]}", remedy="mend it in slurm.conf or with sacctmgr"
            )
        return SlurmMachine(
            cluster=name,
            places=places.rows,
            nodes=nodes.rows,
            qualities=qualities.rows,
            flags=flags,
        )

    def _policy(self, config: health.Config, path: str) -> health.PolicyFileHealth:
        try:
            with Path(path).open("rb") as file:
                kept, text = os.fstat(file.fileno()), file.read(SIZE_MAX + 1)
        except FileNotFoundError as missing:
            remedy = "fairbank slurm sync writes it, where slurmctld runs and on submit hosts"
            raise NotFound("it is not there", remedy=remedy) from missing
        except OSError as bad:
            raise Forbidden(f"{bad.strerror}", remedy=f"chmod a+r {path}") from bad
        found = heading(text)
        readable = bool(kept.st_mode & 0o004) or kept.st_uid == slurm_uid(config)
        return health.PolicyFileHealth(
            path=path,
            written=found.written,
            whole=found.whole,
            readable=readable,
            stale_seconds=self._site.stale_seconds,
        )

    def _asked(self, checks: list[HealthCheck], what: str, ask: Callable[[], T]) -> T | None:
        """The answer; or None, and a check that says why."""
        try:
            return ask()
        except FairbankError as trouble:
            checks.append(HealthCheck(f"{what}: {trouble.message}", False, trouble.remedy))
            return None


def munge_socket(config: health.Config) -> str | None:
    """Where slurm.conf says that munged listens; None for the usual place."""
    said = {name.lower(): value for name, value in parameters(config.get("AuthInfo", "")).items()}
    return said.get("socket")
