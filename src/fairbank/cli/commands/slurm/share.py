"""Command `fairbank share`: fair share like sshare, for programs, or as an explained tree."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from fairbank.cli.commands.slurm.share_compose import COMPOSE
from fairbank.cli.commands.slurm.slurm_options import add_folder, fit, note, print_unreadable
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.host import Local, own_name
from fairbank.cli.framework.options import listed
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import ON_PARENT, SHARES_MAX
from fairbank.core.time import iso
from fairbank.report import forecasts
from fairbank.report.cells import counted, plain
from fairbank.report.columns import Look
from fairbank.report.envelope import as_json, envelope
from fairbank.report.share_tree import COLUMNS, as_data, reading_guide, tree_rows
from fairbank.report.sshare import (
    FIELDS,
    LineFormat,
    default_fields,
    lines,
    parse_fields,
    select_rows,
)
from fairbank.report.tables import table

if TYPE_CHECKING:
    from argparse import Namespace, _MutuallyExclusiveGroup
    from collections.abc import Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.sshare import ShareRow
    from fairbank.slurm.rankings import Shares

SSHARE = "sshare -a -l -P"
"""Command that shows the lines that could not be read."""


BATCH = 5_000
"""Associations sent to the bank in one request."""


def add(parser: Parser) -> None:
    _add_filters(parser)
    group = parser.add_argument_group("Output")
    group.add_argument(
        "--forecast",
        action="store_true",
        help="when each is back at level 1 (classic rule: factor 0.5), if it pauses",
    )
    _add_forms(group.add_mutually_exclusive_group())
    group.add_argument("-n", "--noheader", action="store_true", help="no header line")
    group.add_argument(
        "-l",
        "--long",
        action="store_true",
        help="with normalised usage, level, limits and running TRES",
    )
    group.add_argument(
        "-o", "--format", metavar="COL%WIDTH,...", help="which columns; names may be abbreviated"
    )
    group.add_argument("--helpformat", action="store_true", help="list the columns")


def _add_filters(parser: Parser) -> None:
    parser.add_argument(
        "-a",
        "--all",
        action="store_true",
        help="all users (default: all accounts, and of the users only yourself)",
    )
    parser.add_argument(
        "-A",
        "--accounts",
        "--account",
        metavar="ACCOUNT,...",
        type=listed,
        help="only these accounts",
    )
    parser.add_argument(
        "-u", "--user", "--users", metavar="USER,...", type=listed, help="only these users"
    )
    parser.add_argument(
        "-U", "--users-only", "--Users", action="store_true", help="only users, no accounts"
    )
    parser.add_argument(
        "-m",
        "--partition",
        action="store_true",
        help="show the partition that an association is for",
    )
    parser.add_argument(
        "--set",
        metavar="ACCOUNT=SHARES,...",
        type=_changes,
        help="what if: fair share with these shares",
    )
    add_folder(parser)


def _add_forms(form: _MutuallyExclusiveGroup) -> None:
    form.add_argument(
        "--tree",
        dest="form",
        action="store_const",
        const="tree",
        help="a tree: who is over or under, and what changes it",
    )
    form.add_argument(
        "--json", dest="form", action="store_const", const="json", help="JSON, with a named schema"
    )
    form.add_argument(
        "--csv",
        dest="form",
        action="store_const",
        const="csv",
        help="for a spreadsheet: whole cells, separated by commas",
    )
    form.add_argument(
        "-p",
        "--bars",
        dest="form",
        action="store_const",
        const="bar",
        help="whole cells, each followed by |: sshare's -p",
    )
    form.add_argument(
        "-P",
        "--parsable",
        "--parsable2",
        dest="form",
        action="store_const",
        const="between",
        help="pipe-separated, no trailing delimiter",
    )


def _changes(text: str) -> dict[str, int]:
    changes: dict[str, int] = {}
    for word in listed(text):
        name, _, shares = word.partition("=")
        number = (
            shares.isascii()
            and shares.isdigit()
            and len(shares) <= 10
            and int(shares) <= SHARES_MAX
        )
        if not (name and (shares == "parent" or number)):
            raise ArgumentTypeError(
                f"{word[:40]!r} is not ACCOUNT=SHARES; write for example chem=60 or chem=parent"
            )
        if name in changes:
            raise ArgumentTypeError(f"{name[:40]!r} is there twice; write each account once")
        changes[name] = ON_PARENT if shares == "parent" else int(shares)
    return changes


COLUMNS_ONLY = {"format": "--format", "long": "--long", "partition": "--partition"}
"""Options of the output like sshare only."""
WORDS = {
    "tree": "--tree",
    "json": "--json",
    "csv": "--csv",
    "bar": "--bars",
    "between": "--parsable",
}
ENDINGS = {"csv": LineFormat.COMMAS, "bar": LineFormat.BAR, "between": LineFormat.BETWEEN}


def _fit(options: Namespace) -> None:
    """Raise InvalidInput for options that would change nothing."""
    if options.forecast and options.form in ("tree", *ENDINGS):
        remedy = "it is a table, or with --json for programs"
        raise InvalidInput(
            f"a forecast has no form {WORDS[options.form]}", field="--forecast", remedy=remedy
        )
    if options.form == "json":
        fit(options, WORDS[options.form], COLUMNS_ONLY | {"noheader": "--noheader"})
    elif options.forecast or options.form == "tree":
        fit(options, "--forecast" if options.forecast else "--tree", COLUMNS_ONLY)


def run(context: Context, options: Namespace) -> int:
    if options.helpformat:
        context.say(" ".join(field.name for field in FIELDS))
        return 0
    _fit(options)
    fields = parse_fields(options.format) if options.format else None
    from fairbank.slurm.rankings import read_shares

    shares = read_shares(options.folder, context.now(), Local())
    code = print_unreadable(context, shares.unreadable, SSHARE)
    shares = _there(context, shares)
    rows = select_rows(
        shares.rows,
        users=_users(context, options),
        accounts=options.accounts or None,
        users_only=options.users_only,
    )
    if options.forecast:
        _show_forecast(context, shares, rows)
    elif options.form == "json":
        data = as_data(rows, shares.rule)
        document = envelope(
            "fairbank.share/1", iso(shares.as_of), shares.cluster, data, shares.unreadable, Look()
        )
        context.say(as_json(document))
    elif options.form == "tree":
        _show_tree(context, shares, rows)
    else:
        fields = fields or default_fields(
            long=options.long, partitions=options.partition, fair_tree=shares.rule.fair_tree
        )
        for line in lines(
            rows, fields, ENDINGS.get(options.form, LineFormat.PADDED), header=not options.noheader
        ):
            context.say(line)
    return code


def _there(context: Context, shares: Shares) -> Shares:
    """Return the shares, with --set as they would be. Raises InvalidInput if rows are missing."""
    if not shares.rows:
        raise InvalidInput(
            "Slurm's output has no fair share",
            field="sshare",
            remedy="check what it prints: sshare -a",
        )
    if not context.options.set:
        return shares
    if shares.unreadable:
        remedy = "fix the lines above first: sacctmgr show associations"
        raise InvalidInput(
            "with associations left out all other figures would be wrong",
            field="--set",
            remedy=remedy,
        )
    from fairbank.slurm.rankings import with_shares

    changed = with_shares(shares, context.options.set)
    context.note("Computed from these shares and what users used; Slurm has others.")
    return changed


def _add_record(parser: Parser) -> None:
    add_folder(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be recorded, change nothing"
    )


def _record(context: Context, options: Namespace) -> int:
    from fairbank.slurm.fairshare_view.shares import daily_records
    from fairbank.slurm.rankings import read_shares

    shares = read_shares(options.folder, context.now(), Local())
    rows = daily_records(shares.cluster, shares.rows, shares.rule)
    path = "/share?dry-run=true" if options.dry_run else "/share"
    kept = 0
    for begin in range(0, len(rows), BATCH):
        batch = {"cluster": shares.cluster, "at": shares.as_of, "rows": rows[begin : begin + BATCH]}
        kept += context.client.post(path, batch)["data"]["kept"]
    code = print_unreadable(context, shares.unreadable, SSHARE)
    of = f"{plain(str(shares.cluster))}, {iso(shares.as_of)[:10]}"
    if options.dry_run:
        context.note(f"Nothing is recorded. {of}: {counted(kept, 'association')} would be.")
    elif kept:
        context.say(f"{of}: {counted(kept, 'association')}")
    else:
        context.note(f"{of}: recorded before")
    return code


def _users(context: Context, options: Namespace) -> Sequence[str] | None:
    if options.all:
        return None
    return options.user or [own_name()]


def _show_tree(context: Context, shares: Shares, rows: Sequence[ShareRow]) -> None:
    output = table(
        COLUMNS,
        tree_rows(rows, shares.rule),
        context.format,
        context.width,
        header=not context.options.noheader,
    )
    for line in output.lines:
        context.paint(line)
    note(
        context, reading_guide(rows, shares.rule, shares.recoveries, context.options.accounts or ())
    )


def _show_forecast(context: Context, shares: Shares, rows: Sequence[ShareRow]) -> None:
    shown = {(row.account, row.user, row.partition) for row in rows}
    recoveries = [recovery for recovery in shares.recoveries if recovery[:3] in shown]
    if context.options.form == "json":
        data = forecasts.as_data(recoveries, shares.rule)
        document = envelope(
            "fairbank.forecast/1",
            iso(shares.as_of),
            shares.cluster,
            data,
            shares.unreadable,
            Look(),
        )
        context.say(as_json(document))
        return
    output = table(
        forecasts.COLUMNS,
        forecasts.table_rows(recoveries),
        context.format,
        context.width,
        header=not context.options.noheader,
    )
    for line in output.lines:
        context.paint(line)
    note(context, forecasts.assumptions(shares.rule))


COMMAND = Noun(
    "fair share as in Slurm, now and by day",
    {
        "show": Command(
            "show shares, usage and factors (the default)",
            ("fairbank share", "fairbank share --tree -A chem_qmc", "fairbank share --forecast -a"),
            add,
            run,
            reads=False,
            asks=False,
        ),
        "record": Command(
            "store today's figures in the bank, once per day and cluster",
            (
                "fairbank share record",
                "fairbank share record --from /srv/slurm-said",
                "fairbank share record --dry-run",
            ),
            _add_record,
            _record,
            reads=False,
        ),
        "compose": COMPOSE,
    },
    default="show",
)
