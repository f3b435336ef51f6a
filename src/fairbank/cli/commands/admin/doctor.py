"""Command `fairbank doctor`: check this bank, Slurm's connection to its bank, or a cluster."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.exit_codes import FOUND
from fairbank.cli.framework.options import add_config, add_option, cluster_name
from fairbank.cli.framework.output import Listing, show
from fairbank.cli.framework.progress import ProgressBar, add_progress
from fairbank.core.errors import InvalidInput
from fairbank.report.cells import plain
from fairbank.report.columns import Column, text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.core.health import HealthCheck
    from fairbank.service.settings import BankSettings

COLUMNS = (
    Column("OK", lambda row, form: "ok" if row["ok"] else "x"),
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
    about = "on slurmctld's host: look at Slurm, the agent, the plug-ins, and the way to the bank"
    add_option(group, "--slurm", about)
    about = "the agent's settings (default: /etc/fairbank/agent.toml)"
    add_option(group, "--agent-config FILE", about)
    about = "the rules of submission (default: /etc/fairbank/slurm.toml)"
    add_option(group, "--site FILE", about)
    about = "what this Slurm must be called (default: whatever it is)"
    # Without --cluster for it, which is a flag here.
    add_option(group, "-M, --clusters NAME", about, dest="cluster", type=cluster_name)
    about = "the queue of this host: its state, directory and daemons (fairbank cluster up)"
    add_option(parser, "--cluster", about, dest="embedded")


def run(context: Context, options: Namespace) -> int:
    places, checks = _run_checks(context, options)
    if options.form or options.format:
        rows = [
            {"what": check.what, "ok": check.ok, "remedy": None if check.ok else check.remedy}
            for check in checks
        ]
        show(context, Listing("fairbank.check/1", COLUMNS, rows, more=places))
    else:
        for check in checks:
            what = context.in_zone(check.what)
            context.print_text(plain(f"{'ok' if check.ok else 'x ':<4}{what}"))
            if not check.ok and check.remedy:
                context.print_text(plain(f"      try: {context.in_zone(check.remedy)}"))
    return 0 if all(check.ok for check in checks) else FOUND


def _run_checks(
    context: Context, options: Namespace
) -> tuple[Mapping[str, str], Sequence[HealthCheck]]:
    """Return settings and store of the bank that was checked, if one was, and the checks."""
    if options.embedded:
        from fairbank.cli.commands.cluster.checks import check_cluster

        for name in ("slurm", "config", *_BESIDE):
            if getattr(options, name):
                word = _BESIDE.get(name, f"--{name}")
                what = "it does not go with --cluster"
                raise InvalidInput(what, field=word, remedy="leave out one of them")
        return {}, check_cluster()
    if options.slurm:
        if options.config:
            raise InvalidInput(
                "it names the settings of a bank on this host",
                field="--config",
                remedy="leave it out, or leave out --slurm",
            )
        return {}, check_slurm(context, agent=options.agent_config, site=options.site)
    for name, word in _BESIDE.items():
        if getattr(options, name):
            raise InvalidInput(
                "it goes with --slurm", field=word, remedy="add --slurm, or leave it out"
            )
    from fairbank.setup.bank_settings import bank_places, settings_of

    settings = settings_of(options.config)
    places = bank_places(options.config, settings)
    context.note_places(places)
    context.bank = settings.server.name
    with ProgressBar("doctor", options) as progress:
        at_work = partial(progress.wait, "whether the SQLite file is sound")
        return places, check_bank(options.config, settings, at_work)


def check_bank(
    config: str | None, settings: BankSettings, at_work: Callable[[], None]
) -> Sequence[HealthCheck]:
    """Check the bank on this host.

    Args:
        config: file of its settings; None for the default file.
        settings: its content.
        at_work: called now and then while the file of the store is checked.
    """
    from pathlib import Path

    from fairbank.core.health import run_check
    from fairbank.rest.auth.keyfile import read_secret
    from fairbank.rest.client import Client, parse_address
    from fairbank.rest.server.open_files import server_process
    from fairbank.service.ops.doctor import check_file_modes, check_store_and_settings
    from fairbank.setup.bank_settings import SystemClock, settings_file
    from fairbank.setup.server import check_munge

    socket = f"unix:{settings.server.socket}"
    process = server_process(Path(settings.server.socket))
    # Not the limit of this command, which a shell may have lowered.
    limit = f"limit of open files of the server, process {process and process.number}"
    return [
        run_check(
            f"secret file {settings.secret_file}", lambda: read_secret(Path(settings.secret_file))
        ),
        *check_file_modes(settings, settings_file(config)),
        *check_store_and_settings(settings, SystemClock(), at_work),
        *check_munge(settings),
        run_check(f"server at {socket}", lambda: Client(parse_address(socket)).get("/health", {})),
        *([] if process is None else [run_check(limit, process.demand_enough)]),
    ]


def check_slurm(context: Context, *, agent: str | None, site: str | None) -> Sequence[HealthCheck]:
    """Check Slurm, the agent, the plug-ins and the connection to the bank.

    Args:
        context: the bank to ask, and the name that the cluster must have.
        agent: settings of the agent; None for the default.
        site: rules of submission; None for the default.
    """
    import os

    from fairbank.agent.control import agent_status
    from fairbank.rest.auth.munge import LIBRARY, Munge
    from fairbank.slurm.agent_settings import read_agent_settings, settings_file
    from fairbank.slurm.commands import SlurmCommands
    from fairbank.slurm.health.doctor import Doctor
    from fairbank.slurm.health.slurm_checks import AgentHealth
    from fairbank.slurm.policy import read_site_rules

    def agent_facts() -> AgentHealth:
        settings = read_agent_settings(settings_file(agent))
        partitions = settings.partitions.values()
        return AgentHealth(
            socket=settings.plugin.socket,
            slurm_users=settings.plugin.uids(),
            patience=max(terms.patience for terms in (settings.terms, *partitions)),
            status=agent_status(settings.control.socket),
        )

    def munge(socket: str | None) -> None:
        munged = Munge(socket=socket, library=os.environ.get("FAIRBANK_LIBMUNGE", LIBRARY))
        munged.decode(munged.encode(b"fairbank doctor"))

    rules = read_site_rules(site)
    doctor = Doctor(SlurmCommands(), context.client, agent=agent_facts, munge=munge, site=rules)
    return list(doctor.checks(context.settings.cluster))


COMMAND = Command(
    "check this bank, the set-up next to Slurm, or a cluster; exit code 8 if something is wrong",
    ("{} --config /etc/fairbank/fairbank.toml", "{} --slurm --json", "{} --cluster"),
    add,
    run,
    columns=COLUMNS,
)
