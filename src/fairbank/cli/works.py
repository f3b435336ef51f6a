"""What the commands that run on the bank's own host are made of. The composition provides it; nothing heavy is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fairbank.cli.beside import BesideSlurm
    from fairbank.cli.figures import Figures, History
    from fairbank.cli.standings import Standings
    from fairbank.report.share_tree import Rule
    from fairbank.report.shares import ShareRow
    from fairbank.rest.client import Client
    from fairbank.values.refusal_kind import RefusalKind

    Progress = Callable[[int, int], None]
    """Called with how much is done, and of how much."""


class Finding(Protocol):
    """One thing that is not as the journal says: in which book (0 is the office's), perhaps at which entry."""

    @property
    def book(self) -> int: ...
    @property
    def what(self) -> str: ...
    @property
    def entry(self) -> int | None: ...


class Verdict(Protocol):
    """What an audit read and found."""

    @property
    def entries(self) -> int: ...
    @property
    def books(self) -> int: ...
    @property
    def runs(self) -> int: ...
    @property
    def findings(self) -> Sequence[Finding]: ...


class Head(Protocol):
    """How far a book is: the number of its last entry and that entry's link."""

    @property
    def book(self) -> int: ...
    @property
    def seq(self) -> int: ...
    @property
    def link(self) -> bytes: ...


class Check(Protocol):
    """One thing that `doctor` looked at. `remedy` is what to do when it is not `ok`."""

    @property
    def what(self) -> str: ...
    @property
    def ok(self) -> bool: ...
    @property
    def remedy(self) -> str | None: ...


class Explained(Protocol):
    """A reason why the bank says no: its name, what it means in a few words and in more, what to do, and its kind."""

    @property
    def name(self) -> str: ...
    @property
    def meaning(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def remedy(self) -> str: ...
    @property
    def kind(self) -> RefusalKind: ...


class FinalBalance(Protocol):
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
    def balances(self) -> Sequence[FinalBalance]: ...
    @property
    def checks(self) -> Sequence[Invariant]: ...
    @property
    def fingerprint(self) -> str: ...


class Books(Protocol):
    """Looking after the books."""

    def heads(self, config: str | None) -> Sequence[Head]: ...

    def verify(self, config: str | None, heads: Mapping[int, tuple[int, bytes]], progress: Progress | None) -> Verdict:
        """Read all books again. `heads` are those written down earlier: book to (seq, link)."""
        ...

    def backup(self, config: str | None, path: str, *, replace: bool, progress: Progress | None) -> int:
        """Write a backup while the bank works. Raises Conflict when there is a file and `replace` is false. Returns the number of rows."""
        ...

    def check_backup(self, path: str, progress: Progress | None) -> int:
        """Read a backup to its end. Returns the number of rows."""
        ...

    def restore(self, config: str | None, path: str, *, replace: bool, progress: Progress | None) -> int:
        """Fill the store from a backup. Raises Conflict when it is not empty and `replace` is false. Returns the number of rows."""
        ...


class Doctors(Protocol):
    """Looking for what is wrong."""

    def of_bank(self, config: str | None) -> Sequence[Check]: ...

    def beside_slurm(self, client: Client, cluster: str | None, *, agent: str | None, site: str | None) -> Sequence[Check]:
        """Look at the Slurm of this host, the bank that `client` asks, and what stands between them. `agent` and `site` are files of
        settings; None means the usual ones."""
        ...


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


class Works(Protocol):
    """All of these raise Trouble, and so do those of the parts. `config` is the settings file; None means the usual one."""

    def reasons(self) -> Sequence[Explained]:
        """Every reason why the bank says no."""
        ...

    def init(self, directory: str | None, store: str | None) -> Sequence[str]:
        """Make settings, secret and an empty store in a folder (None: the usual one), or migrate the store of the bank that is there.
        Returns what was done, in sentences.

        Raises Conflict when there is a bank already, and nothing to migrate.
        """
        ...

    def serve(self, config: str | None, *, port: int | None, ready: Callable[[Sequence[str]], None]) -> int:
        """Serve until told to stop; `ready` is called with the addresses once the bank listens. Returns the exit code."""
        ...

    def agent(self, config: str | None, *, ready: Callable[[Sequence[str]], None]) -> int:
        """Run the agent until it is told to stop; `ready` is called with its sockets once it listens. Returns the exit code."""
        ...

    def agent_status(self, config: str | None) -> dict[str, Any]:
        """What a running agent tells of itself. Raises Unreachable when none answers."""
        ...

    def beside_slurm(self, client: Client, cluster: str | None) -> BesideSlurm:
        """The Slurm of this host beside the bank that `client` asks; it must be called `cluster`, if that is named."""
        ...

    @property
    def books(self) -> Books: ...
    @property
    def doctors(self) -> Doctors: ...
    @property
    def paper(self) -> Paper: ...
    @property
    def figures(self) -> Figures: ...
    @property
    def standings(self) -> Standings: ...
    @property
    def history(self) -> History: ...

    def reckoned(self, rows: Sequence[ShareRow], rule: Rule, shares: Mapping[str, int]) -> Sequence[ShareRow]:
        """Fair share as it would be with other shares of some accounts. Raises Unknown for an account that is not there."""
        ...
