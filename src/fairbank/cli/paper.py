"""What `replay` and `demo` are made of: the bank on paper, and what came of it. Nothing heavy is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Balance(Protocol):
    """How an allocation of a replay ended, in SU-minutes."""

    @property
    def account(self) -> str: ...
    @property
    def resource(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def deposited(self) -> int: ...
    @property
    def charged(self) -> int: ...
    @property
    def held(self) -> int: ...
    @property
    def available(self) -> int: ...


class Invariant(Protocol):
    """What must be true of the books after a replay, whether it is, and the figures."""

    @property
    def what(self) -> str: ...
    @property
    def held(self) -> bool: ...
    @property
    def figures(self) -> str: ...


class Demand(Protocol):
    """What the trace asked for: its lines, and those of them that have nothing to bill."""

    @property
    def jobs(self) -> int: ...
    @property
    def never_ran(self) -> int: ...
    @property
    def without_size(self) -> int: ...


class Replayed(Protocol):
    """What came of a replay. `operations` are holds, charges, releases and refusals together."""

    @property
    def demand(self) -> Demand: ...
    @property
    def holds(self) -> int: ...
    @property
    def charges(self) -> int: ...
    @property
    def releases(self) -> int: ...
    @property
    def refusals(self) -> Mapping[str, int]: ...
    @property
    def written_off(self) -> int: ...
    @property
    def held_peak(self) -> int: ...
    @property
    def operations(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def balances(self) -> Sequence[Balance]: ...
    @property
    def checks(self) -> Sequence[Invariant]: ...
    @property
    def fingerprint(self) -> str: ...


class Paper(Protocol):
    """The main job on paper."""

    def replay(
        self,
        trace: str,
        store: str,
        *,
        cluster: str,
        percent: int,
        periods: int,
        days: int | None,
        payer: str | None,
        record_overruns: bool,
        progress: Callable[[str, int, int], None] | None,
    ) -> Replayed:
        """Run a recorded workload through a new bank at `store`; `progress` is also told what is being done."""
        ...

    def synthesise(self, path: str, *, seed: int, starts: int) -> int:
        """Write the trace of a synthetic month that begins at `starts`. Returns the number of jobs."""
        ...
