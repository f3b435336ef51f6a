"""What a Slurm said before, from the files of a folder: it answers as one that is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.priority.fairshare.settings import PrioritySettings
from fairbank.report.sshare import ShareRow
from fairbank.slurm.parsers.pending_jobs import PendingFactors, read_pending
from fairbank.slurm.parsers.priority import FLAGS, flags_in_doubt, read_settings
from fairbank.slurm.parsers.sacctmgr import read_priorities, read_qualities
from fairbank.slurm.parsers.scontrol import (
    read_clock,
    read_conf,
    read_config,
    read_nodes,
    read_places,
)
from fairbank.slurm.parsers.shares import read_shares
from fairbank.slurm.parsers.sprio import Factors, letters_in, read_factors
from fairbank.slurm.parsers.squeue import read_waiting
from fairbank.slurm.parsers.values import (
    AssociationPriority,
    ParsedRows,
    QueuedOwner,
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
OF_FAIR_SHARE = f"the folder has {SHARES}, {PRIORITIES}, {SETTINGS} and for prio --check more; docs/howto/explain-fair-share.md says what to ask"


class Said:
    """A folder with such files; `how` one is made. Raises NotFound for one that is needed and not there, InvalidInput for one that cannot be
    read."""

    def __init__(self, folder: str, how: str = OF_FAIR_SHARE) -> None:
        self._folder, self._how = Path(folder), how

    @property
    def config(self) -> Mapping[str, str]:
        return read_config(self._text(SETTINGS))

    @property
    def cluster(self) -> str:
        return self.config.get("ClusterName", "")

    @property
    def version(self) -> Version:
        """Raises InvalidInput."""
        return read_version(f"slurm {self.config.get('SLURM_VERSION', '')}")

    def clock(self) -> int:
        """When it said so; it must have spoken in UTC."""
        return read_clock(self._text(SETTINGS))

    def shares(self) -> ParsedRows[ShareRow]:
        return read_shares(self._text(SHARES))

    def factors(self) -> ParsedRows[Factors]:
        text = self._text(PRIORITIES)
        return read_factors(text, letters_in(text))

    def waiting(self) -> ParsedRows[QueuedOwner] | None:
        """None where the folder has no such file."""
        return read_waiting(self._text(WAITING)) if (self._folder / WAITING).exists() else None

    def pending(self) -> ParsedRows[PendingFactors]:
        return read_pending(self._text(JOBS))

    def places(self) -> ParsedRows[SlurmPartition]:
        return read_places(self._text(PLACES))

    def nodes(self) -> ParsedRows[SlurmNode]:
        return read_nodes(self._text(NODES))

    def qualities(self) -> ParsedRows[SlurmQos]:
        return read_qualities(self._text(QUALITIES))

    def association_priorities(self) -> ParsedRows[AssociationPriority]:
        return read_priorities(self._text(ASSOCIATIONS))

    def priority(self) -> PrioritySettings:
        in_doubt = flags_in_doubt(self.config) and (self._folder / CONF).exists()
        return read_settings(
            self.config,
            read_conf(self._text(CONF)).settings.get(FLAGS.lower()) if in_doubt else None,
        )

    def answer(self, name: str) -> str:
        """The file of this name."""
        return self._text(f"{name}.txt")

    def _text(self, name: str) -> str:
        try:
            return (self._folder / name).read_text(errors="replace")
        except FileNotFoundError as missing:
            raise NotFound(
                f"there is no {name} in {self._folder}", field="--from", remedy=self._how
            ) from missing
        except OSError as wrong:
            raise InvalidInput(
                f"cannot read {self._folder / name}: {wrong.strerror}",
                field="--from",
                remedy=self._how,
            ) from wrong
