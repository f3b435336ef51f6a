"""The agent's settings: one TOML file, read strictly; every mistake names its key and the remedy."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from fairbank.core.errors import FairbankError, Forbidden, InvalidInput, NotFound
from fairbank.core.ids import UID_MAX
from fairbank.core.validation import describe_invalid_setting, parse_toml
from fairbank.priority.site_factor import Bend, RuleName, idle_keys
from fairbank.rest.client import MungeSigner, Signer, TokenSigner, parse_address
from fairbank.rest.client.token_file import read_token
from fairbank.slurm.agent.pool import Senders
from fairbank.slurm.agent.silence import PartitionTerms

Absolute = Annotated[str, msgspec.Meta(pattern="^/", max_length=200)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=3_600)]
Uid = Annotated[int, msgspec.Meta(ge=0, le=UID_MAX)]


class PluginSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where slurmctld's plug-in finds the agent (its fairbank_socket). `slurm_user` is slurm.conf's SlurmUser: only that one and root
    may connect."""

    socket: Absolute = "/run/fairbank-agent/prep.sock"
    slurm_user: str | Uid = "slurm"

    def uids(self) -> frozenset[int]:
        """Who may connect. Raises NotFound for a user that is not there."""
        if isinstance(self.slurm_user, int):
            return frozenset({0, self.slurm_user})
        try:
            return frozenset({0, pwd.getpwnam(self.slurm_user).pw_uid})
        except KeyError:
            raise NotFound(
                f"there is no user {self.slurm_user!r}",
                field="plugin.slurm_user",
                remedy="name slurm.conf's SlurmUser, or its number",
            ) from None


class BankSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the bank listens, and how to sign in there: by nothing on its Unix socket; over the network by the token in a file, else by
    MUNGE.

    `timeout`: seconds after which a request counts as failed. `name` is the bank's own, which a MUNGE credential is made for.
    """

    server: str = "unix:/run/fairbank/fairbank.sock"
    timeout: Seconds = 15.0
    token_file: Absolute | None = None
    name: str = "fairbank"
    munge_socket: Absolute | None = None
    libmunge: str | None = None

    def signer(self) -> Signer:
        """Raises NotFound, Forbidden, InvalidInput when the token cannot be had."""
        if parse_address(self.server, field="bank.server").scheme == "unix":
            return Signer()
        if self.token_file:
            return TokenSigner(read_token(self.token_file))
        return MungeSigner(self.name, socket=self.munge_socket, library=self.libmunge)


class OutboxSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file in which reports wait for the bank. It wants a disk of its own host, with room for 1 KiB a report and
    1 MiB beside: what is kept in `PATH.reserve` lets it go on when the disk was full."""

    path: Absolute = "/var/lib/fairbank-agent/outbox.sqlite"


class ControlSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the agent tells its status (`fairbank agent status`) and its metrics for Prometheus: on a socket, and on a port of
    127.0.0.1 if one is given."""

    socket: Absolute = "/run/fairbank-agent/agent.sock"
    port: Port | None = None


class SiteFactorSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table from which Slurm's site_factor/fairbank adds credit left and closeness of expiry to the priority of jobs. It is written
    only if a `path` is set.

    `cluster`: as the bank calls it; only needed where it knows several. `refresh`: seconds between two tables. `stale`: seconds after
    which an old one counts no more. `weight`: what full credit that ends this instant adds to a priority. `rule`: what less credit and
    later ends are worth, as the tables `credit` and `expiry` say more closely. `token_file`: of one who sees all projects and
    allocations; otherwise the agent signs in as for the rest.
    """

    path: Absolute | None = None
    cluster: str | None = None
    refresh: Seconds = 15.0
    stale: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 600
    weight: Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)] = 1_000
    rule: RuleName = "linear"
    credit: Bend = Bend()
    expiry: Bend = Bend()
    token_file: Absolute | None = None

    def signer(self, usual: BankSettings) -> Signer:
        """Raises NotFound, Forbidden, InvalidInput when the token cannot be had."""
        return TokenSigner(read_token(self.token_file)) if self.token_file else usual.signer()


class ReleaseSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether jobs that were held for lack of credit go on by themselves once the bank would pay for them. Otherwise an operator
    releases them.

    `every`: seconds between two looks at Slurm's queue. `again`: seconds after which the same job is looked at once more.
    `token_file`: of one who sees all projects; otherwise the agent signs in as for the rest. Slurm's commands must be in the agent's PATH.
    """

    when_paid: bool = False
    every: Seconds = 60.0
    again: Annotated[float, msgspec.Meta(ge=60, le=86_400)] = 600.0
    token_file: Absolute | None = None

    def signer(self, usual: BankSettings) -> Signer:
        """Raises NotFound, Forbidden, InvalidInput when the token cannot be had."""
        return TokenSigner(read_token(self.token_file)) if self.token_file else usual.signer()


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of it. `terms` are those of every partition; a table under `partitions` changes some of them for one. `log`: JSON lines or short
    ones; "auto" is JSON, but on a terminal short lines, and only warnings."""

    plugin: PluginSettings = PluginSettings()
    bank: BankSettings = BankSettings()
    outbox: OutboxSettings = OutboxSettings()
    senders: Senders = Senders()
    control: ControlSettings = ControlSettings()
    site_factor: SiteFactorSettings = SiteFactorSettings()
    release: ReleaseSettings = ReleaseSettings()
    terms: PartitionTerms = PartitionTerms()
    partitions: dict[str, PartitionTerms] = {}
    log: Literal["auto", "json", "short"] = "auto"

    def terms_of(self, partition: str) -> PartitionTerms:
        return self.partitions.get(partition, self.terms)


SITE_FILE = "/etc/fairbank/agent.toml"


def settings_file(named: str | None) -> Path:
    """The file named, else by FAIRBANK_AGENT_CONFIG, else the site's."""
    return Path(named or os.environ.get("FAIRBANK_AGENT_CONFIG") or SITE_FILE)


def read_agent_settings(path: Path) -> AgentSettings:
    """Read the file at `path`. Raises NotFound when it is missing, Forbidden when it may not be read, InvalidInput naming the key."""
    try:
        text = path.read_bytes()
    except PermissionError as error:
        raise Forbidden(
            f"you may not read the settings {path}",
            field="config",
            remedy="ask as the agent's user",
        ) from error
    except OSError as error:
        raise NotFound(
            f"cannot read the settings {path}: {error.strerror}",
            field="config",
            remedy="name the file with --config; an empty one is enough where all is in its usual place",
        ) from error
    try:
        return agent_settings(text)
    except FairbankError as bad:
        raise type(bad)(f"{path}: {bad.message}", field=bad.field, remedy=bad.remedy) from bad


def agent_settings(text: bytes) -> AgentSettings:
    """The settings that a TOML text says. Raises InvalidInput, naming the key."""
    said = parse_toml(text, "this", field="config")
    try:
        settings = msgspec.convert(_with_usual_terms(said), AgentSettings)
    except msgspec.ValidationError as bad:
        raise describe_invalid_setting(bad, AgentSettings, "docs/reference/agent.md") from bad
    parse_address(settings.bank.server, field="bank.server")
    if settings.senders.minimum > settings.senders.maximum:
        raise InvalidInput(
            "senders.minimum is more than senders.maximum",
            field="senders.minimum",
            remedy="at most senders.maximum",
        )
    if settings.site_factor.stale <= settings.site_factor.refresh:
        raise InvalidInput(
            "site_factor.stale is over before the next table",
            field="site_factor.stale",
            remedy="more than site_factor.refresh",
        )
    for fraction, bend in (
        ("credit", settings.site_factor.credit),
        ("expiry", settings.site_factor.expiry),
    ):
        for name, rule in idle_keys(settings.site_factor.rule, bend):
            field, line = f"site_factor.{fraction}.{name}", f'site_factor.rule = "{rule}"'
            raise InvalidInput(
                f"{field} is only for {line}", field=field, remedy=f"write {line}, or leave it out"
            )
    return settings


def _with_usual_terms(said: dict[str, object]) -> dict[str, object]:
    """What a partition does not say is as for all."""
    usual, partitions = said.get("terms", {}), said.get("partitions")
    if not isinstance(usual, dict) or not isinstance(partitions, dict):
        return said
    return said | {
        "partitions": {
            name: usual | own if isinstance(own, dict) else own for name, own in partitions.items()
        }
    }
