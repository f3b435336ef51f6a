"""What `why` is made of: a job that waits at Slurm, explained. Nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairbank.report.explanation import JobExplanation


Quote = Callable[[Mapping[str, object]], Mapping[str, Any] | None]
"""What the bank answers to a question of what a job costs (`rest.bodies.answers.quote.QuoteCard`); None where no bank is configured.
Raises Trouble."""


class Explained(Protocol):
    """The job, what could not be read, and what is not as it is at slurmctld."""

    @property
    def cluster(self) -> str | None: ...
    @property
    def row(self) -> JobExplanation: ...
    @property
    def unreadable(self) -> Sequence[str]: ...
    @property
    def warnings(self) -> Sequence[str]: ...


class Asked(NamedTuple):
    """About a job of the Slurm of this host, or with `folder` of what one said before. `advice`: what would start it sooner; `likely`: a
    range for its start, drawn from what accounting knows of users, where it answers."""

    job: str
    folder: str | None
    advice: bool
    likely: bool


class SlurmQueue(Protocol):
    """The queue of the Slurm of this host, or with `folder` what one said before."""

    def why(
        self, asked: Asked, *, quote: Quote, progress: Callable[[str, int, int], None] | None
    ) -> Explained:
        """Raises Unknown for a job that is not there, Conflict for one that does not wait, Unreachable when Slurm does not answer."""
        ...
