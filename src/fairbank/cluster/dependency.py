"""Dependencies of a job and their state.

Source: docs/reference/slurm-rules.md, "Dependencies".
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import msgspec


class DependencyState(Enum):
    """State of a dependency, in Slurm's words."""

    YES = "fulfilled"
    NOT_YET = "unfulfilled"
    NEVER = "failed"


class Dependency(NamedTuple):
    """Dependency with its state; the other fields are those of a RequestedDependency."""

    kind: str
    job: int | None = None
    task: int | None = None
    all_tasks: bool = False
    minutes: int = 0
    state: DependencyState = DependencyState.NOT_YET


class Dependencies(msgspec.Struct, frozen=True):
    """Dependencies of a job: all of them must be met, or one of them with `any_of`.

    `text` is Slurm's notation, empty without dependencies. `items` is empty if the text cannot be
    parsed.
    """

    text: str = ""
    items: tuple[Dependency, ...] = ()
    any_of: bool = False

    @property
    def open(self) -> tuple[Dependency, ...]:
        """Dependencies that are not met yet."""
        return tuple(one for one in self.items if one.state is not DependencyState.YES)

    @property
    def is_met(self) -> bool:
        if not self.items:
            return not self.text
        return len(self.open) < len(self.items) if self.any_of else not self.open

    @property
    def is_unmeetable(self) -> bool:
        """True if the dependencies can no longer be met."""
        lost = [one.state is DependencyState.NEVER for one in self.items]
        return all(lost) and bool(lost) if self.any_of else any(lost)
