"""Output of Slurm's commands: of commands that run now, or recorded in files earlier."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from stat import S_ISREG
from typing import Any

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.priority.settings import PrioritySettings
from fairbank.report.slurm.sshare import ShareRow
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

RECORDING_MAX = 1 << 30
"""Largest recorded file in bytes: the lines of about a million jobs."""
PENDING_QUEUE = ("squeue", "--all", "--noheader", "--states=PENDING")


def show_command(table: Table[Any], *which: str) -> tuple[str, ...]:
    """Return the command for a table of sacctmgr."""
    name, *what = table.command.split()
    columns = f"format={','.join(table.columns).lower()}"
    return (name, "--noheader", "--parsable2", *what, *which, columns)


_COMMANDS: Mapping[str, Sequence[str]] = {
    "config": ("scontrol", "show", "config"),
    "sshare": (
        "sshare",
        "--all",
        "--partition",
        "--noheader",
        "--parsable2",
        f"--format={','.join(sshare.SHARE_COLUMNS)}",
    ),
    "sprio": sprio.command(sprio.LETTERS),
    "squeue": (*PENDING_QUEUE, f"--format={squeue.WAITING_FORMAT}"),
    "waiting": (*PENDING_QUEUE, f"--Format={squeue.WAITING_JOBS_FORMAT}"),
    "jobs": ("scontrol", "--all", "--oneliner", "show", "job"),
    "partitions": ("scontrol", "--oneliner", "show", "partition"),
    "nodes": ("scontrol", "--oneliner", "show", "node"),
    "qos": show_command(sacctmgr.QOS),
    "qos-factors": show_command(sacctmgr.QOS_FACTORS),
}
"""By the names of the files in which output is recorded."""
_OF_CLUSTER: Mapping[str, Table[Any]] = {
    "associations": sacctmgr.PRIORITIES,
    "association-factors": sacctmgr.ASSOCIATION_FACTORS,
}
"""Tables of which only the rows of the cluster are read."""


def command_of(file: str, cluster: str = "") -> Sequence[str]:
    """Return the command whose output is in this file."""
    table = _OF_CLUSTER.get(file)
    return _COMMANDS[file] if table is None else show_command(table, f"cluster={cluster}")


class SlurmOutput(ABC):
    """Output of Slurm's commands. Each has the name of a file in which it may be recorded."""

    @abstractmethod
    def text(self, file: str, *command: str) -> str:
        """Return the output of a command, or the text of its file."""

    @abstractmethod
    def require(self, files: Collection[str], commands: Mapping[str, Sequence[str]] = {}) -> None:
        """Check that the output that is needed was recorded, so that all that is missing is named
        at once.

        Args:
            files: names of files that the methods of this class read.
            commands: others, by the names of their files.

        Raises:
            NotFound: output is missing; the remedy has the command for each file.
        """

    def _text_of(self, file: str, cluster: str = "") -> str:
        return self.text(file, *command_of(file, cluster))

    @property
    @abstractmethod
    def version(self) -> Version:
        """Version of Slurm. Raises InvalidInput for one that is not supported."""

    @cached_property
    def _config_text(self) -> str:
        return self._text_of("config")

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
        return sshare.read_shares(self._text_of("sshare"))

    def factors(self) -> ParsedRows[sprio.SprioLine]:
        """Return the priorities of pending jobs with their factors."""
        letters = sprio.letters_of(self.version)
        return sprio.read_factors(self.text("sprio", *sprio.command(letters)), letters)

    def pending_owners(self) -> ParsedRows[PendingOwner] | None:
        """Return the accounts and QOS of pending jobs; None if they were not recorded."""
        return squeue.WAITING.read(self._text_of("squeue"))

    def all_waiting_jobs(self) -> ParsedRows[squeue.WaitingJob]:
        """Return what people ask of pending jobs."""
        return squeue.read_waiting_jobs(self._text_of("waiting"))

    def own_jobs(self, user: str) -> ParsedRows[squeue.WaitingJob]:
        """Return the jobs of a user that have not ended."""
        words = ("squeue", "--all", "--noheader", f"--user={user}")
        return squeue.read_own_jobs(self.text("own", *words, f"--Format={squeue.OWN_JOBS_FORMAT}"))

    def pending_jobs(self) -> ParsedRows[job_lines.PendingFactors]:
        """Return the requests of pending jobs."""
        return job_lines.read_pending(self._text_of("jobs"))

    def partitions(self) -> ParsedRows[SlurmPartition]:
        """Return the partitions."""
        return machine.read_partitions(self._text_of("partitions"))

    def partition_names(self) -> Collection[str]:
        """Return the names of all partitions, hidden ones too."""
        command = ("scontrol", "--all", "--oneliner", "show", "partition")
        return machine.read_partition_names(self.text("partitions", *command))

    def reservation_names(self) -> Collection[str]:
        """Return the names of all reservations."""
        command = ("scontrol", "--oneliner", "show", "reservation")
        return machine.read_reservation_names(self.text("reservations", *command))

    def nodes(self) -> ParsedRows[SlurmNode]:
        """Return the nodes."""
        return machine.read_nodes(self._text_of("nodes"))

    def qos(self) -> ParsedRows[SlurmQos]:
        """Return the QOS."""
        return sacctmgr.QOS.read(self._text_of("qos"))

    def association_priorities(self) -> ParsedRows[AssociationPriority]:
        """Return the priorities of the associations."""
        return sacctmgr.PRIORITIES.read(self._text_of("associations", self.cluster))

    def qos_factors(self) -> ParsedRows[QosFactors]:
        """Return the priorities and limits of accrual of the QOS."""
        return sacctmgr.QOS_FACTORS.read(self._text_of("qos-factors"))

    def association_factors(self) -> ParsedRows[AssociationFactors]:
        """Return the priorities and limits of accrual of the associations."""
        text = self._text_of("association-factors", self.cluster)
        return sacctmgr.ASSOCIATION_FACTORS.read(text)

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
        remedy=f"record them: TZ=UTC {shlex.join(command_of('config'))} > {path}",
    )


def cluster_differs(cluster: str | None, named: str) -> InvalidInput:
    """Return the error for output of another cluster than the one that was named."""
    return InvalidInput(
        f"the queue is that of cluster {cluster}, not {named}",
        field="--from",
        remedy=(
            f"name a queue of {named}, or the cluster of the job: -M {shlex.quote(str(cluster))}"
        ),
    )


def require_regular(path: Path) -> None:
    """Check that a recorded file has an end. Raises OSError, InvalidInput.

    A device or a pipe may have none, or wait for someone to write.
    """
    status = path.stat()
    if not S_ISREG(status.st_mode):
        raise InvalidInput(
            f"cannot read {path}: it is not a regular file",
            field="--from",
            remedy="record the output of the command in a file",
        )
    if status.st_size > RECORDING_MAX:
        raise InvalidInput(
            f"{path} has more than {RECORDING_MAX >> 30} GiB",
            field="--from",
            remedy="record the output of the command again",
        )


class RecordedOutput(SlurmOutput):
    """Directory of files with earlier output.

    Raises NotFound for a file that is needed and missing, InvalidInput for one that cannot be read.
    The remedy is the command that records the file.
    """

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)

    def require(self, files: Collection[str], commands: Mapping[str, Sequence[str]] = {}) -> None:
        """Check that these files exist (arguments: `SlurmOutput`). Raises NotFound."""
        names = dict.fromkeys([*files, *commands])
        missing = [name for name in names if not self._path(f"{name}.txt").exists()]
        if not missing:
            return
        cluster = "CLUSTER" if "config" in missing else self.cluster
        recordings = [
            self._recording(name, commands.get(name) or command_of(name, cluster))
            for name in missing
        ]
        raise NotFound(
            f"there is no {', '.join(f'{name}.txt' for name in missing)} in {self._directory}",
            field="--from",
            remedy=f"record {'it' if len(missing) == 1 else 'them'}: {'; '.join(recordings)}",
        )

    def text(self, file: str, *command: str) -> str:
        """Return the text of a file."""
        return self._read(f"{file}.txt", self._recording(file, command))

    def _recording(self, file: str, command: Sequence[str]) -> str:
        """Return the command that records a file."""
        return f"TZ=UTC {shlex.join(command)} > {shlex.quote(str(self._path(f'{file}.txt')))}"

    def _path(self, name: str) -> Path:
        return self._directory / name

    @property
    def version(self) -> Version:
        """Version of Slurm. Raises InvalidInput."""
        return config.read_version(f"slurm {self.config.get('SLURM_VERSION', '')}")

    def factors(self) -> ParsedRows[sprio.SprioLine]:
        """Return the recorded priorities, with as many columns as the file has."""
        text = self._text_of("sprio")
        return sprio.read_factors(text, sprio.letters_in(text))

    def pending_owners(self) -> ParsedRows[PendingOwner] | None:
        """Return the accounts and QOS of pending jobs; None without such a file."""
        return super().pending_owners() if self._path("squeue.txt").exists() else None

    def _flags_in_conf(self) -> str | None:
        path = self._path("slurm.conf")
        if not path.exists():
            return None
        text = self._read(path.name, f"cp slurm.conf {shlex.quote(str(path))}")
        return config.read_conf(text).settings.get(FLAGS.lower())

    def _read(self, name: str, recording: str) -> str:
        path = self._path(name)
        remedy = f"record it: {recording}"
        try:
            require_regular(path)
            with path.open(errors="replace") as file:
                return file.read(RECORDING_MAX)
        except FileNotFoundError as error:
            raise NotFound(
                f"there is no {name} in {self._directory}", field="--from", remedy=remedy
            ) from error
        except OSError as error:
            raise InvalidInput(
                f"cannot read {path}: {error.strerror}", field="--from", remedy=remedy
            ) from error
