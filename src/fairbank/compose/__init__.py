"""The composition: the only room that knows everyone, and that nobody imports. Here `fairbank` and `sproject` begin.

The everyday commands speak to the bank over REST and import next to nothing. What the heavy ones need is a file for each kind of them,
imported when it is used: this file is the one place where an import inside a function is not a fault of the map.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from fairbank.cli import main as commands

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairbank.bank.explaining import Explained
    from fairbank.compose.books import Books
    from fairbank.compose.composition import Composition
    from fairbank.compose.courses import Courses
    from fairbank.compose.doctors import Doctors
    from fairbank.compose.explaining import Explaining
    from fairbank.compose.figures import Figures
    from fairbank.compose.history import History
    from fairbank.compose.models import Models
    from fairbank.compose.paper import Paper
    from fairbank.compose.planning import Planning
    from fairbank.compose.questions import Questions
    from fairbank.compose.slurm_queue import SlurmQueue
    from fairbank.compose.slurm_says import SlurmSays
    from fairbank.rest.client import Client
    from fairbank.slurm.toolbox import SlurmToolbox


def main() -> int:
    """The command `fairbank`, also by its short names."""
    return commands.run(
        [*commands.SHORT_NAMES.get(os.path.basename(sys.argv[0]), ()), *sys.argv[1:]], Works()
    )


def sproject() -> int:
    """The command `sproject`: HADM's words for the same bank."""
    from fairbank.cli import sproject as hadm

    return hadm.run(sys.argv[1:], Works())


class Works:
    """What the commands that run on the bank's own host and on Slurm's are made of (cli.works.Works)."""

    def reasons(self) -> list[Explained]:
        """Every reason why the bank says no."""
        from fairbank.bank.explaining import explained

        return explained()

    def init(self, directory: str | None, store: str | None) -> list[str]:
        """Make settings, secret and an empty store in a folder; an older store is migrated. Returns what was done."""
        from fairbank.compose.setup import init

        return init(directory, store)

    def serve(
        self, config: str | None, *, port: int | None, ready: Callable[[Sequence[str]], None]
    ) -> int:
        """Serve until told to stop."""
        from fairbank.compose.serving import run

        return run(config, port=port, ready=ready)

    def agent(self, config: str | None, *, ready: Callable[[Sequence[str]], None]) -> int:
        """Run the agent until it is told to stop."""
        from fairbank.compose.agent import run

        return run(config, ready=ready)

    def agent_status(self, config: str | None) -> dict[str, Any]:
        """What a running agent tells of itself. Raises Unreachable when none answers."""
        from fairbank.agent.control import agent_status

        return agent_status(config)

    def beside_slurm(self, client: Client, cluster: str | None) -> SlurmToolbox:
        """The Slurm of this host beside the bank that `client` asks."""
        from fairbank.slurm.toolbox import SlurmToolbox

        return SlurmToolbox(client, cluster)

    @property
    def books(self) -> Books:
        from fairbank.compose.books import Books

        return Books()

    @property
    def doctors(self) -> Doctors:
        from fairbank.compose.doctors import Doctors

        return Doctors()

    @property
    def paper(self) -> Paper:
        from fairbank.compose.paper import Paper

        return Paper()

    @property
    def planning(self) -> Planning:
        from fairbank.compose.planning import Planning

        return Planning()

    @property
    def explaining(self) -> Explaining:
        from fairbank.compose.explaining import Explaining

        return Explaining()

    @property
    def questions(self) -> Questions:
        from fairbank.compose.questions import Questions

        return Questions()

    @property
    def models(self) -> Models:
        from fairbank.compose.models import Models

        return Models()

    @property
    def courses(self) -> Courses:
        from fairbank.compose.courses import Courses

        return Courses()

    @property
    def figures(self) -> Figures:
        from fairbank.compose.figures import Figures

        return Figures()

    @property
    def slurm_says(self) -> SlurmSays:
        from fairbank.compose.slurm_says import SlurmSays

        return SlurmSays()

    @property
    def slurm_queue(self) -> SlurmQueue:
        from fairbank.compose.slurm_queue import SlurmQueue

        return SlurmQueue()

    @property
    def history(self) -> History:
        from fairbank.compose.history import History

        return History()

    def composed(self, file: str) -> Composition:
        """The shares and prices of the centre that a file describes."""
        from fairbank.compose.composition import composed

        return composed(file)
