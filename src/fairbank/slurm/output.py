"""Output of Slurm's commands: of commands that run now, or recorded in files earlier."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.priority.settings import PrioritySettings
from fairbank.report.sshare import ShareRow
from fairbank.slurm.parsers import config, job_lines, machine, sacctmgr, sprio, squeue, sshare
from fairbank.slurm.parsers.columns import Table
from fairbank.slurm.parsers.config import FLAGS, Version
from fairbank.slurm.parsers.values import (
    AssociationFactors,
    AssociationPriority,
    ParsedRows,
    PendingOwner,
    QosFactors,
    SlurmNode,
    SlurmPartition,
    SlurmQos,
)

PENDING_QUEUE = ("squeue", "--all", "--noheader", "--states=PENDING")
WAITING_JOBS = (*PENDING_QUEUE, f"--Format={squeue.WAITING_JOBS_FORMAT}")
_SHOW_CONFIG = ("scontrol", "show", "config")


def show_command(table: Table[Any], *which: str) -> tuple[str, ...]:
    """Return the command for a table of sacctmgr."""
    name, *what = table.command.split()
    columns = f"format={','.join(table.columns).lower()}"
    return (name, "--noheader", "--parsable2", *what, *which, columns)


class SlurmOutput(ABC):
    """Output of Slurm's commands. Each has the name of a file in which it may be recorded."""

    @abstractmethod
    def text(self, file: str, *command: str) -> str:
        """Return the output of a command, or the text of its file."""

    @property
    @abstractmethod
    def version(self) -> Version:
        """Version of Slurm. Raises InvalidInput for one that is not supported."""

    @cached_property
    def _config_text(self) -> str:
        return self.text("config", *_SHOW_CONFIG)

    @cached_property
    def config(self) -> Mapping[str, str]:
        """Settings of `scontrol show config`."""
        return config.read_config(self._config_text)

    @property
    def cluster(self) -> str:
        """Name of the cluster."""
        return self.config.get("ClusterName", "")

    def clock(self) -> int:
        """Return when slurmctld printed its settings, by its clock, in seconds since 1970."""
        return config.read_clock(self._config_text)

    def shares(self) -> ParsedRows[ShareRow]:
        """Return the fair share of every association."""
        columns = f"--format={','.join(sshare.SHARE_COLUMNS)}"
        command = ("sshare", "--all", "--partition", "--noheader", "--parsable2", columns)
        return sshare.read_shares(self.text("sshare", *command))

    def factors(self) -> ParsedRows[sprio.SprioLine]:
        """Return the priorities of pending jobs with their factors."""
        letters = sprio.letters_of(self.version)
        return sprio.read_factors(self.text("sprio", *sprio.command(letters)), letters)

    def pending_owners(self) -> ParsedRows[PendingOwner] | None:
        """Return the accounts and QOS of pending jobs; None if they were not recorded."""
        command = (*PENDING_QUEUE, f"--format={squeue.WAITING_FORMAT}")
        return squeue.WAITING.read(self.text("squeue", *command))

    def all_waiting_jobs(self) -> ParsedRows[squeue.WaitingJob]:
        """Return what people ask of pending jobs."""
        return squeue.read_waiting_jobs(self.text("waiting", *WAITING_JOBS))

    def pending_jobs(self) -> ParsedRows[job_lines.PendingFactors]:
        """Return the requests of pending jobs."""
        command = ("scontrol", "--all", "--oneliner", "show", "job")
        return job_lines.read_pending(self.text("jobs", *command))

    def partitions(self) -> ParsedRows[SlurmPartition]:
        """Return the partitions."""
        command = ("scontrol", "--oneliner", "show", "partition")
        return machine.read_partitions(self.text("partitions", *command))

    def nodes(self) -> ParsedRows[SlurmNode]:
        """Return the nodes."""
        return machine.read_nodes(self.text("nodes", "scontrol", "--oneliner", "show", "node"))

    def qos(self) -> ParsedRows[SlurmQos]:
        """Return the QOS."""
        return sacctmgr.QOS.read(self.text("qos", *show_command(sacctmgr.QOS)))

    def association_priorities(self) -> ParsedRows[AssociationPriority]:
        """Return the priorities of the associations."""
        command = show_command(sacctmgr.PRIORITIES, f"cluster={self.cluster}")
        return sacctmgr.PRIORITIES.read(self.text("associations", *command))

    def qos_factors(self) -> ParsedRows[QosFactors]:
        """Return the priorities and limits of accrual of the QOS."""
        return sacctmgr.QOS_FACTORS.read(
            self.text("qos-factors", *show_command(sacctmgr.QOS_FACTORS))
        )

    def association_factors(self) -> ParsedRows[AssociationFactors]:
        """Return the priorities and limits of accrual of the associations."""
        command = show_command(sacctmgr.ASSOCIATION_FACTORS, f"cluster={self.cluster}")
        return sacctmgr.ASSOCIATION_FACTORS.read(self.text("association-factors", *command))

    def priority_settings(self) -> PrioritySettings:
        """Return the settings of the priority plug-in. Raises InvalidInput."""
        uncertain = config.are_flags_uncertain(self.config)
        return config.read_settings(self.config, self._flags_in_conf() if uncertain else None)

    @abstractmethod
    def _flags_in_conf(self) -> str | None:
        """Return PriorityFlags of slurm.conf, or None if it cannot be read."""


def cluster_missing(directory: str | None) -> InvalidInput:
    """Return the error for settings of Slurm that name no cluster. The bank is not asked then: it
    might answer with the facts of another cluster.
    """
    path = shlex.quote(str(Path(directory or "DIRECTORY") / "config.txt"))
    return InvalidInput(
        "Slurm's settings name no cluster",
        field="--from",
        remedy=f"record them: TZ=UTC {shlex.join(_SHOW_CONFIG)} > {path}",
    )


def cluster_differs(cluster: str | None, named: str) -> InvalidInput:
    """Return the error for output of another cluster than the one that was named."""
    return InvalidInput(
        f"the queue is that of cluster {cluster}, not {named}",
        field="--from",
        remedy=f"name a queue of {named}, or the cluster of the job: -M {cluster}",
    )


class RecordedOutput(SlurmOutput):
    """Directory of files with earlier output.

    Raises NotFound for a file that is needed and missing, InvalidInput for one that cannot be read.
    The remedy is the command that records the file.
    """

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)

    def text(self, file: str, *command: str) -> str:
        """Return the text of a file."""
        return self._read(f"{file}.txt", f"TZ=UTC {shlex.join(command)} >")

    @property
    def version(self) -> Version:
        """Version of Slurm. Raises InvalidInput."""
        return config.read_version(f"slurm {self.config.get('SLURM_VERSION', '')}")

    def factors(self) -> ParsedRows[sprio.SprioLine]:
        """Return the recorded priorities, with as many columns as the file has."""
        text = self.text("sprio", *sprio.command(sprio.LETTERS))
        return sprio.read_factors(text, sprio.letters_in(text))

    def pending_owners(self) -> ParsedRows[PendingOwner] | None:
        """Return the accounts and QOS of pending jobs; None without such a file."""
        return super().pending_owners() if (self._directory / "squeue.txt").exists() else None

    def _flags_in_conf(self) -> str | None:
        if not (self._directory / "slurm.conf").exists():
            return None
        return config.read_conf(self._read("slurm.conf", "cp slurm.conf")).settings.get(
            FLAGS.lower()
        )

    def _read(self, name: str, recording: str) -> str:
        path = self._directory / name
        remedy = f"record it: {recording} {shlex.quote(str(path))}"
        try:
            return path.read_text(errors="replace")
        except FileNotFoundError as error:
            raise NotFound(
                f"there is no {name} in {self._directory}", field="--from", remedy=remedy
            ) from error
        except OSError as error:
            raise InvalidInput(
                f"cannot read {path}: {error.strerror}", field="--from", remedy=remedy
            ) from error
