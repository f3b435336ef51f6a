"""Who knows why jobs wait, as the command sees it. The composition provides it; nothing heavy is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairbank.report.explanation import JobExplanation


class Asked(NamedTuple):
    """A job of a recorded workload under a policy. `at`: in seconds of the trace, or `absolute` since 1970; None: when the job came. `runs`
    rehearsals are drawn from a seed."""

    trace: str
    job: int
    policy: str
    at: int | None
    absolute: bool
    processors: int | None
    runs: int
    seed: int


class Explained(Protocol):
    """The job, and what there is to note."""

    @property
    def row(self) -> JobExplanation: ...
    @property
    def warnings(self) -> Sequence[str]: ...


class Explaining(Protocol):
    """Raises Unknown for a job that is not there or does not wait."""

    def in_trace(
        self, asked: Asked, *, progress: Callable[[str, int, int], None] | None
    ) -> Explained:
        """Why it waits then."""
        ...
