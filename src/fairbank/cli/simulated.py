"""What a simulation is made of, as the command sees it. The composition provides it; nothing heavy is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fairbank.cli.figures import Drawn
    from fairbank.cli.granting import Granting
    from fairbank.cli.otherwise import Asked


class Figures(Protocol):
    """The measures of a schedule. Times are seconds; shares of the machine are from 0 to 1."""

    @property
    def jobs(self) -> int: ...
    @property
    def users(self) -> int: ...
    @property
    def mean_wait(self) -> float: ...
    @property
    def median_wait(self) -> int: ...
    @property
    def wait_95(self) -> int: ...
    @property
    def longest_wait(self) -> int: ...
    @property
    def mean_turnaround(self) -> float: ...
    @property
    def mean_slowdown(self) -> float: ...
    @property
    def utilisation(self) -> float: ...
    @property
    def loss_of_capacity(self) -> float: ...
    @property
    def makespan(self) -> int: ...
    @property
    def jain(self) -> float | None: ...


class Misses(Protocol):
    """Of the jobs whose fair start was looked at, the part that started later, and by how many seconds on average."""

    @property
    def jobs(self) -> int: ...
    @property
    def part(self) -> float: ...
    @property
    def mean_miss(self) -> float: ...


class Delivered(Protocol):
    """An account's part of what was delivered, and the part that its shares entitle it to. It is called as in the trace."""

    @property
    def account(self) -> int | str: ...
    @property
    def delivered(self) -> float: ...
    @property
    def entitled(self) -> float: ...


class Account(Protocol):
    """What became of a payer's credit, in SU-minutes, and of the jobs for which there was none: `refused`, or `unpaid`, run for nothing."""

    @property
    def account(self) -> int | str: ...
    @property
    def granted(self) -> int: ...
    @property
    def charged(self) -> int: ...
    @property
    def expired(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def unpaid(self) -> int: ...
    @property
    def unpaid_minutes(self) -> int: ...


class Credit(Protocol):
    """Of all payers, and how many entries the journal has. The books were audited."""

    @property
    def accounts(self) -> Sequence[Account]: ...
    @property
    def entries(self) -> int: ...


class Starts(Protocol):
    """When each job started."""

    def fingerprint(self) -> str: ...


class Notes(Protocol):
    """What a reader of another format made of it: lines that are left out, by the reason, and how many are read otherwise, by how."""

    @property
    def left(self) -> Mapping[str, Sequence[int]]: ...
    @property
    def read(self) -> Mapping[str, int]: ...


class Outcome(Protocol):
    """What came of a policy. `left` are the numbers of the jobs that were not simulated, `read` how many were read otherwise, each by an
    enum whose value says why, or how. `announced`: how many lines the trace says that it has, where it does. `remarks`: what the file
    of the policy says in vain. `strangers`: accounts with shares that are not in the trace."""

    @property
    def policy(self) -> str: ...
    @property
    def processors(self) -> int: ...
    @property
    def lines(self) -> int: ...
    @property
    def left(self) -> Mapping[Any, Sequence[int]]: ...
    @property
    def read(self) -> Mapping[Any, int]: ...
    @property
    def figures(self) -> Figures | None: ...
    @property
    def misses(self) -> Misses | None: ...
    @property
    def astray(self) -> float | None: ...
    @property
    def jain_of_shares(self) -> float | None: ...
    @property
    def delivered(self) -> Sequence[Delivered]: ...
    @property
    def starts(self) -> Starts: ...
    @property
    def notes(self) -> Notes: ...
    @property
    def credit(self) -> Credit | None: ...
    @property
    def announced(self) -> int | None: ...
    @property
    def remarks(self) -> Sequence[str]: ...
    @property
    def strangers(self) -> Sequence[str]: ...


class Met(Protocol):
    """How many jobs each change was about."""

    @property
    def users(self) -> Mapping[str, int]: ...
    @property
    def groups(self) -> Mapping[str, int]: ...
    @property
    def jobs(self) -> Mapping[int, int]: ...


class Pair(Protocol):
    """What came of a workload, and of the changed one."""

    @property
    def recorded(self) -> Outcome: ...
    @property
    def changed(self) -> Outcome: ...


class Answer(Protocol):
    """Of the workload itself, and of each shaken copy."""

    @property
    def plain(self) -> Pair: ...
    @property
    def copies(self) -> Sequence[Pair]: ...
    @property
    def met(self) -> Met: ...


class Terms(NamedTuple):
    """What `simulate` and `whatif` both take: the machine's processors (None: as the trace says), a file of shares, whose shares and credit
    are (user or group), and what the bank grants."""

    processors: int | None
    shares: str | None
    by: str | None
    granting: Granting | None


def is_table(path: str) -> bool:
    """Whether starts are written there as a table, with room for several policies."""
    return path.endswith(".csv")


class Planning(Protocol):
    """The scheduler on paper."""

    def simulate(
        self,
        workload: Any,
        policies: Sequence[str],
        terms: Terms,
        *,
        starts: str | None,
        fair_starts: int,
        plots: bool,
        progress: Callable[[str, int, int], None] | None,
    ) -> Sequence[Outcome]:
        """Run a workload (the name of a file, or one of Models) under each policy; `progress` is told the policy, how many jobs are read,
        and of about how many. With `plots` it is kept how each went, for pictures. Raises FairbankError before that where the file `starts`
        cannot be written."""
        ...

    def save_starts(self, outcomes: Any, path: str) -> None:
        """Write when each job started, under one policy; in a table what became of it under each. Raises FairbankError where that cannot
        be."""
        ...


class Questions(Protocol):
    """What would have been."""

    def what_if(
        self,
        trace: str,
        asked: Asked,
        terms: Terms,
        *,
        progress: Callable[[str, int, int], None] | None,
    ) -> Answer:
        """Run a workload as it was recorded, and as it is asked for; and both of each shaken copy."""
        ...


class Models(Protocol):
    """Synthetic workloads."""

    def workload(self, file: str | None, *, jobs: int | None, seed: int) -> Any:
        """That of the centre that a file describes, or of the usual one, with so many jobs."""
        ...

    def save(self, workload: Any, path: str) -> None:
        """Write it as a trace."""
        ...


class Courses(Protocol):
    """How simulations went, as pictures."""

    def check(self, policies: Sequence[str], folder: str) -> None:
        """Whether a picture has room for these, and they can be written there. Raises InvalidInput, Forbidden."""
        ...

    def draw(self, outcomes: Sequence[Any], folder: str, *, as_png: bool) -> Sequence[Drawn]:
        """A file for each picture, in a folder that is made if need be."""
        ...
