"""Command `fairbank report centre`: capacity, granted, used, occupied, idle and down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.bank.usage import PERIOD
from fairbank.cli.commands.report.pictures import add_directory, bank_caption
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import add_period
from fairbank.cli.framework.output import Listing, caption, show, window
from fairbank.cli.framework.picture_files import write_pictures
from fairbank.core.errors import FairbankError
from fairbank.core.time import Instant
from fairbank.report import centre
from fairbank.report.columns import instant_of

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row


def _add(parser: Parser) -> None:
    add_directory(parser)
    add_period(parser, PERIOD)


def _run(context: Context, options: Namespace) -> int:
    # Without both options the bank takes 30 days to the second, whatever this host's clock shows.
    period = context.period(PERIOD if options.endtime else None, begins_later=True)
    figures = context.get("/centre", period)["data"]
    since, until = instant_of(figures["since"]), instant_of(figures["until"])
    figures, down = _with_slurm(context, figures, since, until)
    rows = centre.centre_rows(figures["resources"], down)
    totals = {key: figures[key] for key in centre.TOTALS}
    form = context.format
    span = window(context, since, until)
    notes = centre.notes(rows, totals, form)
    if until > context.bank_time + 1:  # by default this second counts
        notes.append(
            "The period ends in the future: CAPACITY, IDLE, DOWN and utilisation are of all of it."
        )
    if options.directory:
        about = "Granted, used, occupied, idle and down capacity of each resource"
        shown = bank_caption(context, "Use of the centre", about, span)
        figures = [("centre", centre.figure(rows, shown))]
        drawn = write_pictures(options.directory, figures, as_png=options.png)
        notes += [f"{picture.file}: {picture.caption.about}" for picture in drawn]
    listing = Listing(
        "fairbank.centre-resource/2",
        centre.COLUMNS,
        rows,
        f"{caption(context)}\n{span}",
        warnings=centre.warnings(rows, form),
        notes=notes,
        empty="There is no resource: neither in the settings, nor granted or used.",
        more={"totals": totals},
    )
    return show(context, listing)


def _with_slurm(
    context: Context, figures: Row, since: int, until: int
) -> tuple[Row, Mapping[tuple[str, str], int]]:
    """Return the figures with the nodes of this host's cluster where the settings have none, and
    its down SU-minutes by resource and clusters; as it is without Slurm.
    """
    from shutil import which

    if which("scontrol") is None:
        return figures, {}
    from fairbank.rest.client.bank_client import BankClient
    from fairbank.slurm.capacity import read_capacity
    from fairbank.slurm.commands import SlurmCommands

    slurm = SlurmCommands()
    try:
        name = slurm.cluster
        known = BankClient(context.client).cluster(name)
        own, unreadable = read_capacity(slurm, known, since, until)
    except FairbankError as error:
        # Many hosts have Slurm's commands without a cluster. The table says what is not known.
        context.detail(f"Slurm's nodes are not known: {error.message}")
        return figures, {}
    context.note(*(f"! not read: {line}" for line in unreadable))
    if own.sharing:
        context.note(
            f"! {', '.join(sorted(own.sharing))}: some nodes are in partitions of several of these."
            " CAPACITY of each includes them, and IDLE what jobs of the others had there."
        )
    import msgspec

    from fairbank.bank.centre import ClusterSize, with_nodes
    from fairbank.rest.schemas.usage import CentreFigures, centre_figures, use_of_figures

    use = with_nodes(
        use_of_figures(msgspec.convert(figures, CentreFigures)),
        ClusterSize(name, own.cpus, own.gpus),
        {resource: units for resource, (units, _) in own.by_resource.items()},
        until - since,
    )
    down = {(resource, name): minutes for resource, (_, minutes) in own.by_resource.items()}
    return msgspec.to_builtins(centre_figures(use, Instant(since), Instant(until))), down


COMMAND = Command(
    "show capacity, granted, used, occupied, idle and down of the whole centre",
    ("{}", "{} figures -S 2026-01-01 -E 2027-01-01   a year, also as a picture", "{} --json"),
    _add,
    _run,
    columns=centre.COLUMNS,
)
