"""What a job waits for of other jobs: what `sbatch --dependency` says, and how far it has come (facts, section 8.8)."""

from __future__ import annotations

from enum import Enum

import msgspec


class DependencyState(Enum):
    """How far a dependency has come, in the word that Slurm has for it."""

    YES = "fulfilled"
    NOT_YET = "unfulfilled"
    NEVER = "failed"


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that must be so of another job.

    kind       afterok or the like, in sbatch's word
    job        the number of the job or of the array; None where the kind names none (singleton)
    task       of the array, where it is one task of it
    whole      it is every task of the array
    minutes    of `after`: so long after the start
    """

    kind: str
    job: int | None = None
    task: int | None = None
    all_tasks: bool = False
    minutes: int = 0
    state: DependencyState = DependencyState.NOT_YET


class Dependencies(msgspec.Struct, frozen=True):
    """All of them must be met, or with `any_of` one.

    `text` is how Slurm tells them, empty for none; where nobody can read it there is nothing in `each`.
    """

    text: str = ""
    items: tuple[Dependency, ...] = ()
    any_of: bool = False

    @property
    def open(self) -> tuple[Dependency, ...]:
        """Those that are not met."""
        return tuple(one for one in self.items if one.state is not DependencyState.YES)

    @property
    def is_met(self) -> bool:
        if not self.items:
            return not self.text
        return len(self.open) < len(self.items) if self.any_of else not self.open

    @property
    def is_unmeetable(self) -> bool:
        """Whether they cannot be met any more, whatever happens."""
        lost = [one.state is DependencyState.NEVER for one in self.items]
        return all(lost) and bool(lost) if self.any_of else any(lost)
