"""`fairbank doctor`: looks for what is wrong with this bank, or between Slurm and its bank, and says how to mend it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fairbank.cli.command import Command
from fairbank.cli.exits import FOUND
from fairbank.cli.init import add_config
from fairbank.cli.options import add_clusters
from fairbank.cli.output import Listing, show, shown_columns
from fairbank.cli.progress import Progress, add_progress
from fairbank.core.errors import Malformed
from fairbank.report.cells import plain
from fairbank.report.columns import Column, text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser
    from fairbank.core.check import HealthCheck

COLUMNS = (
    Column("OK", lambda row, look: "ok" if row["ok"] else "x"),
    Column("CHECK", text("what")),
    Column("TRY", text("remedy"), drop=1),
)


_BESIDE = {
    "agent_config": "--agent-config",
    "site": "--site",
    "cluster": "--clusters",
    "server": "--server",
    "acting_as": "--as",
}


def add(parser: Parser) -> None:
    add_config(parser)
    add_progress(parser)
    group = parser.add_argument_group("Next to Slurm")
    group.add_argument(
        "--slurm",
        action="store_true",
        help="on slurmctld's host: look at Slurm, the agent, the plug-ins, and the way to the bank",
    )
    group.add_argument(
        "--agent-config",
        metavar="FILE",
        help="the agent's settings (usual: /etc/fairbank/agent.toml)",
    )
    group.add_argument(
        "--site", metavar="FILE", help="the rules of submission (usual: /etc/fairbank/slurm.toml)"
    )
    add_clusters(group, "what this Slurm must be called (usual: whatever it is)")


def run(desk: Desk, options: Namespace) -> int:
    if shown_columns(desk, COLUMNS):
        return 0
    checks = _looked(desk, options)
    if options.form or options.format:
        rows = [
            {"what": each.what, "ok": each.ok, "remedy": None if each.ok else each.remedy}
            for each in checks
        ]
        show(desk, Listing("fairbank.check/1", COLUMNS, rows))
    else:
        for check in checks:
            desk.say(plain(f"{'ok' if check.ok else 'x ':<4}{check.what}"))
            if not check.ok and check.remedy:
                desk.say(plain(f"      try: {check.remedy}"))
    return 0 if all(check.ok for check in checks) else FOUND


def _looked(desk: Desk, options: Namespace) -> Sequence[HealthCheck]:
    if options.slurm:
        if options.config:
            raise Malformed(
                "it names the settings of a bank on this host",
                field="--config",
                remedy="leave it out, or leave out --slurm",
            )
        return desk.works.doctors.beside_slurm(
            desk.client, desk.cluster, agent=options.agent_config, site=options.site
        )
    for name, word in _BESIDE.items():
        if getattr(options, name):
            raise Malformed(
                "it goes with --slurm", field=word, remedy="add --slurm, or leave it out"
            )
    with Progress("doctor", options) as progress:
        return desk.works.doctors.of_bank(
            options.config, partial(progress.wait, "whether the file with the books is sound")
        )


COMMAND = Command(
    "look for what is wrong with this bank, or next to Slurm; 8 when something is",
    (
        "fairbank doctor",
        "fairbank doctor --config /etc/fairbank/fairbank.toml",
        "fairbank doctor --slurm --json",
    ),
    add,
    run,
)
