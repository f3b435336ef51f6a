"""What `why` is made of: a job that waits at Slurm, explained. Nothing heavy is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairbank.report.why import WhyRow


class Explained(Protocol):
    """The job, what could not be read, and what is not as it is at slurmctld."""

    @property
    def cluster(self) -> str | None: ...
    @property
    def row(self) -> WhyRow: ...
    @property
    def unreadable(self) -> Sequence[str]: ...
    @property
    def warnings(self) -> Sequence[str]: ...


class SlurmQueue(Protocol):
    """The queue of the Slurm of this host, or with `folder` what one said before."""

    def why(self, job: str, folder: str | None, *, advice: bool) -> Explained:
        """Raises Unknown for a job that is not there, Conflict for one that does not wait, Unreachable when Slurm does not answer."""
        ...
