"""Command `fairbank cluster`: a queue of one's own on this host."""

from __future__ import annotations

from fairbank.cli.commands.cluster.down import DOWN
from fairbank.cli.commands.cluster.status import STATUS
from fairbank.cli.commands.cluster.up import UP
from fairbank.cli.framework.command import Noun

COMMAND = Noun(
    "run a queue with accounting on this host", {"up": UP, "down": DOWN, "status": STATUS}
)
