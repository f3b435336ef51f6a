"""What the commands that run on the bank's own host are made of. The composition provides it; nothing heavy is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairbank.cli.beside import BesideSlurm
    from fairbank.cli.books import Books
    from fairbank.cli.composed import Composition
    from fairbank.cli.figures import Figures, History
    from fairbank.cli.paper import Paper
    from fairbank.cli.simulated import Courses, Models, Planning, Questions
    from fairbank.cli.slurm_queue import SlurmQueue
    from fairbank.cli.slurm_says import SlurmSays
    from fairbank.cli.waiting import Explaining
    from fairbank.core.check import HealthCheck
    from fairbank.core.refusal_kind import RefusalKind
    from fairbank.rest.client import Client


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


class Doctors(Protocol):
    """Looking for what is wrong."""

    def of_bank(self, config: str | None, at_work: Callable[[], None]) -> Sequence[HealthCheck]:
        """Look at this bank. `at_work` is called now and then as long as the file with its books is checked."""
        ...

    def beside_slurm(
        self, client: Client, cluster: str | None, *, agent: str | None, site: str | None
    ) -> Sequence[HealthCheck]:
        """Look at the Slurm of this host, the bank that `client` asks, and what stands between them. `agent` and `site` are files of
        settings; None means the usual ones."""
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

    def serve(
        self, config: str | None, *, port: int | None, ready: Callable[[Sequence[str]], None]
    ) -> int:
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
    def planning(self) -> Planning: ...
    @property
    def explaining(self) -> Explaining: ...
    @property
    def questions(self) -> Questions: ...
    @property
    def models(self) -> Models: ...
    @property
    def courses(self) -> Courses: ...
    @property
    def figures(self) -> Figures: ...
    @property
    def slurm_says(self) -> SlurmSays: ...
    @property
    def slurm_queue(self) -> SlurmQueue: ...
    @property
    def history(self) -> History: ...

    def composed(self, file: str) -> Composition:
        """The shares and prices of the centre that a file describes."""
        ...
