"""Slurm's output of earlier, read from a directory of files in place of running its commands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.priority.settings import PrioritySettings
from fairbank.report.sshare import ShareRow
from fairbank.slurm.parsers.pending_jobs import PendingFactors, read_pending
from fairbank.slurm.parsers.priority import FLAGS, are_flags_uncertain, read_settings
from fairbank.slurm.parsers.sacctmgr import read_priorities, read_qos
from fairbank.slurm.parsers.scontrol import (
    read_clock,
    read_conf,
    read_config,
    read_nodes,
    read_partitions,
)
from fairbank.slurm.parsers.sprio import SprioLine, letters_in, read_factors
from fairbank.slurm.parsers.squeue import read_waiting
from fairbank.slurm.parsers.sshare import read_shares
from fairbank.slurm.parsers.values import (
    AssociationPriority,
    ParsedRows,
    PendingOwner,
    SlurmNode,
    SlurmPartition,
    SlurmQos,
)
from fairbank.slurm.parsers.version import Version, read_version

SHARES, PRIORITIES, WAITING, SETTINGS, CONF = (
    "sshare.txt",
    "sprio.txt",
    "squeue.txt",
    "config.txt",
    "slurm.conf",
)
JOBS, PLACES, NODES, QUALITIES, ASSOCIATIONS = (
    "jobs.txt",
    "partitions.txt",
    "nodes.txt",
    "qos.txt",
    "associations.txt",
)
FAIR_SHARE_REMEDY = (
    f"the folder has {SHARES}, {PRIORITIES}, {SETTINGS} and for prio --check more;"
    " docs/howto/explain-fair-share.md says what to ask"
)


class RecordedOutput:
    """Directory with recorded output.

    Raises NotFound for a file that is needed and missing, InvalidInput for one that cannot be read.

    Args:
        folder: the directory.
        remedy: tells how to record the files.
    """

    def __init__(self, folder: str, remedy: str = FAIR_SHARE_REMEDY) -> None:
        self._folder, self._remedy = Path(folder), remedy

    @property
    def config(self) -> Mapping[str, str]:
        """Settings of `scontrol show config`."""
        return read_config(self._text(SETTINGS))

    @property
    def cluster(self) -> str:
        """Name of the cluster, or an empty text."""
        return self.config.get("ClusterName", "")

    @property
    def version(self) -> Version:
        """Version of Slurm. Raises InvalidInput."""
        return read_version(f"slurm {self.config.get('SLURM_VERSION', '')}")

    def clock(self) -> int:
        """Return the time of the recording. Its commands must have run in UTC."""
        return read_clock(self._text(SETTINGS))

    def shares(self) -> ParsedRows[ShareRow]:
        """Return the fair share of every association."""
        return read_shares(self._text(SHARES))

    def factors(self) -> ParsedRows[SprioLine]:
        """Return the priorities of pending jobs with their factors."""
        text = self._text(PRIORITIES)
        return read_factors(text, letters_in(text))

    def pending_owners(self) -> ParsedRows[PendingOwner] | None:
        """Return the accounts and QOS of pending jobs; None without such a file."""
        return read_waiting(self._text(WAITING)) if (self._folder / WAITING).exists() else None

    def pending_jobs(self) -> ParsedRows[PendingFactors]:
        """Return the requests of pending jobs."""
        return read_pending(self._text(JOBS))

    def partitions(self) -> ParsedRows[SlurmPartition]:
        """Return the partitions."""
        return read_partitions(self._text(PLACES))

    def nodes(self) -> ParsedRows[SlurmNode]:
        """Return the nodes."""
        return read_nodes(self._text(NODES))

    def qos(self) -> ParsedRows[SlurmQos]:
        """Return the QOS."""
        return read_qos(self._text(QUALITIES))

    def association_priorities(self) -> ParsedRows[AssociationPriority]:
        """Return the priorities of the associations."""
        return read_priorities(self._text(ASSOCIATIONS))

    def priority_settings(self) -> PrioritySettings:
        """Return the settings of the priority plug-in."""
        in_doubt = are_flags_uncertain(self.config) and (self._folder / CONF).exists()
        return read_settings(
            self.config,
            read_conf(self._text(CONF)).settings.get(FLAGS.lower()) if in_doubt else None,
        )

    def text(self, name: str) -> str:
        """Return the text of the file with this name."""
        return self._text(f"{name}.txt")

    def _text(self, name: str) -> str:
        try:
            return (self._folder / name).read_text(errors="replace")
        except FileNotFoundError as error:
            raise NotFound(
                f"there is no {name} in {self._folder}", field="--from", remedy=self._remedy
            ) from error
        except OSError as error:
            raise InvalidInput(
                f"cannot read {self._folder / name}: {error.strerror}",
                field="--from",
                remedy=self._remedy,
            ) from error
