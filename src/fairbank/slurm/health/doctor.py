"""Health check of a Slurm and its bank, from a host of Slurm. Other modules judge the results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from fairbank.cluster.partition import Cluster
from fairbank.core.errors import FairbankError, Forbidden, InvalidInput, NotFound, Unavailable
from fairbank.core.health import HealthCheck, run_check
from fairbank.core.time import parse_instant
from fairbank.rest.client import Client
from fairbank.rest.client.bank_client import BankClient
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.health import plugin_files, slurm_checks
from fairbank.slurm.health.plugin_files import (
    RULES,
    SCRIPTS,
    Script,
    TableFile,
    called_files,
    is_loaded,
    is_ours,
)
from fairbank.slurm.parsers.config import (
    read_default_memory,
    slurm_uid,
    split_parameters,
    support_note,
)
from fairbank.slurm.parsers.values import ParsedRows, SlurmQos
from fairbank.slurm.policy import SiteRules
from fairbank.slurm.policy_file import POLICY_SIZE_MAX, read_header
from fairbank.slurm.reconcile.prices import SlurmMachine
from fairbank.slurm.site_factor import TABLE_SIZE_MAX, decode
from fairbank.slurm.slurm_conf import assumed_config, conf_path, conf_settings, read_text

T = TypeVar("T")

SLURMCTLD_REMEDY = (
    "start it: systemctl start slurmctld; its log says why it ended. Until then the rest is judged"
    " by slurm.conf"
)


LOG_END = 65_536


class Doctor:
    """Checks of one Slurm, one bank, and what stands between them on this host.

    Args:
        slurm: commands of the cluster.
        client: client of the bank.
        agent: returns the settings and the status of the agent. Raises FairbankError.
        munge: makes a credential at a socket (None: the default) and reads it. Raises
            FairbankError.
        site: rules of the site for submissions.
    """

    def __init__(
        self,
        slurm: SlurmCommands,
        client: Client,
        *,
        agent: Callable[[], slurm_checks.AgentHealth],
        munge: Callable[[str | None], None],
        site: SiteRules,
    ) -> None:
        self._slurm, self._client = slurm, client
        self._agent, self._munge, self._site = agent, munge, site

    def checks(self, cluster: str | None) -> Iterator[HealthCheck]:
        """Yield all checks. If slurmctld does not answer, its slurm.conf instead."""
        checks: list[HealthCheck] = []
        version = self._try(checks, "Slurm's commands", lambda: self._slurm.version)
        config = self._try(checks, "slurmctld answers", self._config)
        alive = config is not None
        if config is None:
            read = partial(assumed_config, self._slurm.conf)
            config = self._try(checks, "slurm.conf", read) or {}
        yield from checks
        name = config.get("ClusterName", "")
        if cluster is not None and name not in ("", cluster):
            text = f"this host belongs to cluster {name}, not {cluster}"
            yield HealthCheck(text, False, "ask on a host of its own")
            return
        if version is not None:
            text = f"Slurm {version} of cluster {name or cluster or '(unknown)'}"
            yield HealthCheck(f"{text}: {support_note(version)}", True)
        yield from self._slurm_checks(config, name or cluster, alive=alive)
        yield from self._agent_checks(config)
        yield from self._policy_checks(config)

    def _config(self) -> slurm_checks.Config:
        """Return slurmctld's settings. Raises Unavailable with a remedy."""
        try:
            return self._slurm.config
        except Unavailable as away:
            raise Unavailable(away.message, field=away.field, remedy=SLURMCTLD_REMEDY) from away

    def _slurm_checks(
        self, config: slurm_checks.Config, name: str | None, *, alive: bool
    ) -> Iterator[HealthCheck]:
        checks: list[HealthCheck] = []
        if alive:
            slurm_time = self._try(checks, "clock of slurmctld", self._slurm.clock)
            if slurm_time is not None:
                checks.append(slurm_checks.clock_check(int(time.time()), slurm_time, "slurmctld"))
        is_embedded = slurm_checks.is_embedded(config)
        if config and not is_embedded:
            checks.append(slurm_checks.authentication_check(config))
        if config.get("AuthType", "auth/munge") == "auth/munge":
            text = "munged on this host"
            checks.append(run_check(text, lambda: self._munge(munge_socket(config))))
        cluster = self._bank_cluster(checks, name)
        machine = None
        if alive:
            read = partial(self._machine, config, name or "")
            machine = self._try(checks, "partitions, nodes and QOS", read)
        if machine is not None:
            accounting = () if is_embedded else slurm_checks.accounting_checks(config, machine)
            checks += [
                *accounting,
                *slurm_checks.billing_weights(machine, cluster),
                *slurm_checks.limit_checks(machine.partitions),
            ]
            if cluster is not None:
                checks += slurm_checks.price_checks(machine, cluster)
                checks += slurm_checks.size_checks(machine, cluster)
                required = self._site.require_partition
                checks += slurm_checks.default_partition_checks(cluster, required=required)
        elif config and not alive:
            unknown = SlurmMachine(cluster=name or "", partitions=())
            checks += slurm_checks.accounting_checks(config, unknown)
            checks.append(run_check("slurmdbd", self._qos))
        yield from checks

    def _bank_cluster(self, checks: list[HealthCheck], name: str | None) -> Cluster | None:
        """Return the cluster with the bank's prices, or None."""
        answer = self._try(checks, "bank", lambda: self._client.get("/whoami"))
        if answer is None:
            return None
        bank_time = parse_instant(answer["as_of"])
        checks.append(slurm_checks.clock_check(int(time.time()), bank_time, "the bank"))
        prices = partial(BankClient(self._client).cluster, name)
        return self._try(checks, "prices of the bank", prices)

    def _agent_checks(self, config: slurm_checks.Config) -> Iterator[HealthCheck]:
        checks: list[HealthCheck] = []
        needs_agent = slurm_checks.needs_agent(config)
        agent = self._try(checks, "agent", self._agent) if needs_agent else None
        yield from checks
        is_embedded = slurm_checks.is_embedded(config)
        if config and not is_embedded:
            yield from slurm_checks.plugin_checks(config, agent)
        if agent is not None:
            yield from slurm_checks.agent_checks(config, agent, int(time.time()))
        if is_embedded:  # it speaks to the agent itself, and loads no files
            return
        yield from plugin_files.script_checks(find_scripts(config))
        if agent is not None and config:
            yield from self._site_factor_checks(config, agent.status.get("site_factor"))

    def _site_factor_checks(
        self, config: slurm_checks.Config, status: Mapping[str, Any] | None
    ) -> Iterator[HealthCheck]:
        checks: list[HealthCheck] = []
        settings = self._try(checks, "slurm.conf", lambda: conf_settings(conf_path(config)))
        yield from checks
        if settings is not None:
            table = find_table(plugin_files.table_path(settings))
            yield from plugin_files.site_factor_checks(
                config, settings, status, table, int(time.time())
            )

    def _policy_checks(self, config: slurm_checks.Config) -> Iterator[HealthCheck]:
        checks: list[HealthCheck] = []
        if slurm_checks.is_embedded(config):
            return
        for path in filter(None, (self._site.policy, self._site.public_policy)):
            read = partial(self._policy, config, path)
            if policy := self._try(checks, f"submission policy {path}", read):
                checks += slurm_checks.policy_checks(policy, int(time.time()))
        yield from checks

    def _machine(self, config: slurm_checks.Config, name: str) -> SlurmMachine:
        flags = config.get("PriorityFlags", "")
        partitions, nodes = self._slurm.partitions(), self._slurm.nodes()
        qos = self._qos()
        if unreadable := (*partitions.unreadable, *nodes.unreadable, *qos.unreadable):
            remedy = "fix it in slurm.conf or with sacctmgr"
            raise NotFound(f"cannot read {unreadable[0]}", remedy=remedy)
        return SlurmMachine(
            cluster=name,
            partitions=partitions.rows,
            nodes=nodes.rows,
            qos=qos.rows,
            flags=flags,
            default_memory=read_default_memory(config),
        )

    def _qos(self) -> ParsedRows[SlurmQos]:
        """Return the QOS of slurmdbd. Raises Unavailable with the remedy that its log suggests."""
        try:
            return self._slurm.qos()
        except Unavailable as away:
            remedy = slurm_checks.slurmdbd_remedy(find_slurmdbd_log(self._slurm.conf))
            if remedy is None:
                raise
            raise Unavailable(away.message, field=away.field, remedy=remedy) from away

    def _policy(self, config: slurm_checks.Config, path: str) -> slurm_checks.PolicyFileHealth:
        try:
            with Path(path).open("rb") as file:
                info, text = os.fstat(file.fileno()), file.read(POLICY_SIZE_MAX + 1)
        except FileNotFoundError as error:
            remedy = "fairbank slurm sync writes it, where slurmctld runs and on submit hosts"
            raise NotFound("the file does not exist", remedy=remedy) from error
        except OSError as error:
            raise Forbidden(f"{error.strerror}", remedy=f"chmod a+r {path}") from error
        header = read_header(text)
        readable = bool(info.st_mode & 0o004) or info.st_uid == slurm_uid(config)
        return slurm_checks.PolicyFileHealth(
            path=path,
            written=header.written,
            is_whole=header.is_whole,
            is_readable=readable,
            stale_seconds=self._site.stale_seconds,
        )

    def _try(self, checks: list[HealthCheck], what: str, ask: Callable[[], T]) -> T | None:
        """Return the answer; or None, and add a check that says why."""
        try:
            return ask()
        except FairbankError as error:
            checks.append(HealthCheck(f"{what}: {error.message}", False, error.remedy))
            return None


def munge_socket(config: slurm_checks.Config) -> str | None:
    """Return the socket of munged that slurm.conf names; None for the default."""
    parameters = {
        name.lower(): value for name, value in split_parameters(config.get("AuthInfo", "")).items()
    }
    return parameters.get("socket")


def find_slurmdbd_log(conf: Path) -> str:
    """Return the end of slurmdbd's log if slurmdbd.conf is next to slurm.conf; else no text."""
    try:
        path = Path(conf_settings(conf.with_name("slurmdbd.conf")).get("logfile", ""))
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_END))
            return file.read(LOG_END).decode(errors="replace")
    except (NotFound, OSError):
        return ""


def find_scripts(config: Mapping[str, str]) -> dict[str, Script]:
    """Return the Lua files that Slurm loads, by name."""
    directory = conf_path(config).parent
    return {name: _script(directory / name) for name in SCRIPTS if is_loaded(config, name)}


def _script(path: Path) -> Script:
    text = _text(path)
    if text is None:
        return Script(path=str(path), exists=False, is_ours=False)
    for candidate in (path, *map(Path, called_files(text)[:16])):
        if is_ours(_text(candidate) or ""):
            missing = [
                name for name in RULES if not (candidate.parent / "fairbank" / name).is_file()
            ]
            return Script(path=str(path), exists=True, is_ours=True, missing=missing)
    return Script(path=str(path), exists=True, is_ours=False)


def _text(path: Path) -> str | None:
    try:
        return read_text(path)
    except OSError:
        return None


def find_table(path: str) -> TableFile:
    """Return the table of site factors at this path."""
    try:
        with Path(path).open("rb") as file:
            table = decode(file.read(TABLE_SIZE_MAX + 1))
    except OSError as error:
        return TableFile(path=path, error=str(error.strerror))
    except InvalidInput as error:
        return TableFile(path=path, error=error.message)
    return TableFile(path=path, written=table.written, stale_seconds=table.stale_seconds)
