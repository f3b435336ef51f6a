"""Settings of the agent. `fairbank.slurm.agent_settings` reads the file."""

from __future__ import annotations

import pwd
from typing import Annotated, Literal

import msgspec

from fairbank.agent.outage_policy import PartitionTerms
from fairbank.agent.reports.bank_status import SenderSettings
from fairbank.core.errors import NotFound
from fairbank.core.ids import UID_MAX
from fairbank.core.validation import WORD
from fairbank.rest.client import MungeSigner, Signer, TokenSigner, parse_address
from fairbank.rest.client.signers import read_token

Absolute = Annotated[str, msgspec.Meta(pattern="^/", max_length=200)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=3_600, extra={"unit": "seconds"})]
Uid = Annotated[int, msgspec.Meta(ge=0, le=UID_MAX)]


class PluginSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Socket for slurmctld's plug-in (its fairbank_socket).

    `slurm_user` is slurm.conf's SlurmUser: only that user and root may connect.
    """

    socket: Absolute = "/run/fairbank-agent/prep.sock"
    slurm_user: str | Uid = "slurm"

    def uids(self) -> frozenset[int]:
        """Return the uids that may connect. Raises NotFound for an unknown user."""
        if isinstance(self.slurm_user, int):
            return frozenset({0, self.slurm_user})
        try:
            return frozenset({0, pwd.getpwnam(self.slurm_user).pw_uid})
        except KeyError:
            text, remedy = f"there is no user {self.slurm_user!r}", "name slurm.conf's SlurmUser"
            raise NotFound(text, field="plugin.slurm_user", remedy=remedy) from None


class BankConnectionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Address of the bank, and how the agent authenticates there.

    On the bank's Unix socket it needs no credential; over the network it uses the token in
    `token_file`, or MUNGE without one. `timeout`: seconds after which a request counts as failed.
    `name`: the bank's name, for which a MUNGE credential is made.
    """

    server: str = "unix:/run/fairbank/fairbank.sock"
    timeout: Seconds = 15.0
    token_file: Absolute | None = None
    name: Annotated[str, msgspec.Meta(pattern=WORD)] = "fairbank"
    munge_socket: Absolute | None = None
    libmunge: str | None = None

    def signer(self, token_file: str | None = None) -> Signer:
        """Return the signer, with another token if a file is given.

        Raises NotFound, Forbidden, InvalidInput if the token cannot be read.
        """
        is_local = parse_address(self.server, field="bank.server").scheme == "unix"
        if path := token_file or (None if is_local else self.token_file):
            return TokenSigner(read_token(path))
        if is_local:
            return Signer()
        return MungeSigner(self.name, socket=self.munge_socket, library=self.libmunge)


class OutboxSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """File in which reports wait for the bank.

    It needs a local disk with 1 KiB per report and 1 MiB more: the file `PATH.reserve` lets the
    agent go on after the disk was full.
    """

    path: Absolute = "/var/lib/fairbank-agent/outbox.sqlite"


class ControlSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Socket for `fairbank agent status` and for Prometheus, and optionally a port of 127.0.0.1."""

    socket: Absolute = "/run/fairbank-agent/agent.sock"
    port: Port | None = None


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the agent itself. `terms` hold for every partition without terms of its own."""

    plugin: PluginSettings = PluginSettings()
    bank: BankConnectionSettings = BankConnectionSettings()
    outbox: OutboxSettings = OutboxSettings()
    senders: SenderSettings = SenderSettings()
    control: ControlSettings = ControlSettings()
    terms: PartitionTerms = PartitionTerms()
    partitions: dict[str, PartitionTerms] = {}
    log: Literal["auto", "json", "short"] = "auto"

    def terms_of(self, partition: str) -> PartitionTerms:
        return self.partitions.get(partition, self.terms)
