"""Command `fairbank share`: fair share like sshare, for programs, or as an explained tree."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from fairbank.cli.commands.slurm.share_compose import COMPOSE
from fairbank.cli.commands.slurm.slurm_options import (
    add_directory,
    check_names,
    fit,
    print_json,
    print_unreadable,
)
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.host import check_users, own_name
from fairbank.cli.framework.options import add_forms, add_option, split_list
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import ON_PARENT, SHARES_MAX
from fairbank.core.time import check_unit, iso, parse_moment
from fairbank.core.units import counted, parse_su
from fairbank.report.cells import plain
from fairbank.report.columns import Column, text
from fairbank.report.fair_share import TREE_COLUMNS, csv_lines, reading_guide, tree_data, tree_rows
from fairbank.report.share_forecast import (
    FACTOR_COLUMNS,
    FORECAST_COLUMNS,
    LEVEL_COLUMNS,
    assumptions,
    forecast_data,
    forecast_rows,
    level_assumptions,
    level_rows,
)
from fairbank.report.slurm.notation import PIPE
from fairbank.report.slurm.sshare import COLUMNS, default_fields, lines, parse_fields, select_rows
from fairbank.report.tables import table

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row
    from fairbank.report.slurm.sshare import ShareRow
    from fairbank.slurm.rankings import Shares

SSHARE = "sshare -a -l -P"
"""Command that shows the lines that could not be read."""
SSHARE_COLUMNS = [Column(name, text(name)) for name in COLUMNS]
BATCH = 5_000
"""Associations sent to the bank in one request."""


FORMS = {
    "--tree": "a tree: who is over or under, and what changes it",
    "--json": "JSON, with a named schema",
    "--csv": "for a spreadsheet: whole cells, separated by commas",
    "-p, --bars": "whole cells, each followed by |: sshare's -p",
    "-P, --parsable, --parsable2": "pipe-separated, no trailing delimiter",
}
COLUMNS_ONLY = ("format", "long", "partition")
"""Options of the output like sshare only."""


def add(parser: Parser) -> None:
    about = "all users (default: all accounts, and of the users only yourself)"
    add_option(parser, "-a, --all", about)
    about = "only these accounts"
    add_option(parser, "-A, --accounts, --account ACCOUNT,...", about, type=split_list)
    add_option(parser, "-u, --user, --users USER,...", "only these users", type=split_list)
    add_option(parser, "-U, --users-only, --Users", "only users, no accounts")
    add_option(parser, "-m, --partition", "show the partition that an association is for")
    about = "what if: fair share with these shares"
    add_option(parser, "--set ACCOUNT=SHARES,...", about, type=_changes)
    about = "with --forecast: levels after a pause of this length, such as 3weeks"
    add_option(parser, "--pause TIME", about, type=_pause)
    about = (
        "with --forecast: levels after a run of this price (fairbank quote), after the pause if any"
    )
    add_option(parser, "--run AMOUNT", about, type=_run_price)
    add_directory(parser)
    group = parser.add_argument_group("Output")
    about = "when each is back at level 1 (classic rule: factor 0.5), if it pauses"
    add_option(group, "--forecast", about)
    add_forms(group, FORMS)
    add_option(group, "-n, --noheader", "no header line")
    add_option(group, "-l, --long", "with normalised usage, level, limits and running TRES")
    about = "which columns; names may be abbreviated"
    add_option(group, "-o, --format COL%WIDTH,...", about)
    add_option(group, "--helpformat", "list the columns, each with its meaning")


def _pause(text: str) -> int:
    check_unit(text, field="--pause")
    if not re.fullmatch(r"0*[1-9]\d{0,5}[a-z]+", text.lower(), re.ASCII):
        raise ArgumentTypeError(f"{text[:40]!r} is not a length of time; write for example 3weeks")
    try:
        return parse_moment(f"now+{text}", 0, field="--pause")
    except InvalidInput as bad:
        raise ArgumentTypeError(
            f"{text[:40]!r} has an unknown unit or is too long; write for example 2weeks, 10days or"
            " 6months"
        ) from bad


def _run_price(text: str) -> int:
    return parse_su(text, field="--run")


def _changes(text: str) -> dict[str, int]:
    changes: dict[str, int] = {}
    for word in split_list(text):
        name, _, shares = word.partition("=")
        is_number = re.fullmatch(r"\d{1,10}", shares, re.ASCII) and int(shares) <= SHARES_MAX
        if not (name and (shares == "parent" or is_number)):
            raise ArgumentTypeError(
                f"{word[:40]!r} is not ACCOUNT=SHARES; write for example chem=60 or chem=parent"
            )
        if name in changes:
            raise ArgumentTypeError(f"{name[:40]!r} is there twice; write each account once")
        changes[name] = ON_PARENT if shares == "parent" else int(shares)
    return changes


def _check_options(options: Namespace) -> None:
    """Raise InvalidInput for options that would change nothing."""
    if options.forecast and options.form not in (None, "json"):
        remedy = "it is a table, or with --json for programs"
        raise InvalidInput(
            f"a forecast has no form --{options.form}", field="--forecast", remedy=remedy
        )
    for name in ("pause", "run"):
        if getattr(options, name) and not options.forecast:
            raise InvalidInput(
                "it changes nothing without --forecast", field=f"--{name}", remedy="add --forecast"
            )
    if options.form == "json":
        fit(options, "--json", (*COLUMNS_ONLY, "noheader"))
    elif options.forecast or options.form == "tree":
        fit(options, "--forecast" if options.forecast else "--tree", COLUMNS_ONLY)


def _columns(options: Namespace) -> Sequence[Column]:
    """Return the columns to explain; of a forecast those of all its tables."""
    if options.forecast:
        named = {column.head for column in FORECAST_COLUMNS}
        others = [column for column in LEVEL_COLUMNS if column.head not in named]
        return *FORECAST_COLUMNS, *others, *FACTOR_COLUMNS
    return TREE_COLUMNS if options.form == "tree" else SSHARE_COLUMNS


def run(context: Context, options: Namespace) -> int:
    _check_options(options)
    fields = parse_fields(options.format) if options.format else None
    from fairbank.slurm.rankings import read_shares

    shares = read_shares(options.directory, context.now(), context.zone)
    code = print_unreadable(context, shares.unreadable, SSHARE)
    shares = _with_changes(context, shares)
    check_names("account", options.accounts or (), {row.account for row in shares.rows})
    check_users(options.user or (), {row.user for row in shares.rows})
    rows = select_rows(
        shares.rows,
        users=None if options.all else options.user or [own_name()],
        accounts=options.accounts or None,
        users_only=options.users_only,
    )
    if options.forecast:
        _show_forecast(context, shares, rows)
    elif options.form == "json":
        _print_json(context, "fairbank.share/1", shares, tree_data(rows, shares.rule))
    elif options.form == "tree":
        _show_table(context, TREE_COLUMNS, tree_rows(rows, shares.rule))
        named = options.accounts or ()
        context.note(*reading_guide(rows, shares.rule, shares.recoveries, named))
    else:
        fields = fields or default_fields(
            long=options.long, partitions=options.partition, fair_tree=shares.rule.fair_tree
        )
        header = not options.noheader
        if options.form == "csv":
            context.print_lines(csv_lines(rows, fields, header=header))
        else:
            delimiter = PIPE if options.form in ("bars", "parsable") else ""
            is_ended = options.form == "bars"
            context.print_lines(
                lines(rows, fields, delimiter=delimiter, is_ended=is_ended, header=header)
            )
    return code


def _show_forecast(context: Context, shares: Shares, rows: Sequence[ShareRow]) -> None:
    shown = {(row.account, row.user, row.partition) for row in rows}
    recoveries = [recovery for recovery in shares.recoveries if recovery[:3] in shown]
    pause, run = context.options.pause or 0, context.options.run or 0
    levels = [
        # An SU-minute is a billing unit for a minute.
        after
        for after in (shares.levels_after(pause, run * 60) if pause or run else ())
        if after[:3] in shown
    ]
    if context.options.form == "json":
        data = forecast_data(recoveries, shares.rule, levels)
        _print_json(context, "fairbank.forecast/1", shares, data)
    elif pause or run:
        columns = LEVEL_COLUMNS if shares.rule.fair_tree else (*LEVEL_COLUMNS, *FACTOR_COLUMNS)
        _show_table(context, columns, level_rows(levels, shares.rule))
        price = context.format.for_sentences.su(run) if run else ""
        context.note(*level_assumptions(shares.rule, pause, price))
    else:
        _show_table(context, FORECAST_COLUMNS, forecast_rows(recoveries))
        context.note(*assumptions(shares.rule))


def _print_json(context: Context, schema: str, shares: Shares, data: Sequence[Row]) -> None:
    print_json(context, schema, shares.as_of, shares.cluster, data, shares.unreadable)


def _show_table(context: Context, columns: Sequence[Column], rows: Sequence[Row]) -> None:
    header = not context.options.noheader
    context.print_escaped(
        *table(columns, rows, context.format, context.table_width, header=header).lines
    )


def _with_changes(context: Context, shares: Shares) -> Shares:
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
    add_directory(parser)
    add_option(parser, "--dry-run", "say what would be recorded, change nothing")


def _record(context: Context, options: Namespace) -> int:
    from fairbank.slurm.fairshare_view.shares import daily_records
    from fairbank.slurm.output import cluster_missing
    from fairbank.slurm.rankings import read_shares

    shares = read_shares(options.directory, context.now(), context.zone)
    if shares.cluster is None:
        raise cluster_missing(options.directory)
    rows = daily_records(shares.cluster, shares.rows, shares.rule)
    path = "/share?dry-run=true" if options.dry_run else "/share"
    kept = 0
    for begin in range(0, len(rows), BATCH):
        batch = {"cluster": shares.cluster, "at": shares.as_of, "rows": rows[begin : begin + BATCH]}
        kept += context.client.post(path, batch)["data"]["kept"]
    code = print_unreadable(context, shares.unreadable, SSHARE)
    of = f"{plain(shares.cluster)}, {iso(shares.as_of)[:10]}"
    if options.dry_run:
        context.note(f"Nothing is recorded. {of}: {counted(kept, 'association')} would be.")
    elif kept:
        context.print_text(f"{of}: {counted(kept, 'association')}")
    else:
        context.note(f"{of}: recorded before")
    return code


COMMAND = Noun(
    "fair share as in Slurm, now and by day",
    {
        "show": Command(
            "show shares, usage and factors (the default)",
            (
                "fairbank share",
                "fairbank share --tree -A chem_qmc",
                "fairbank share --forecast -a --pause 3weeks",
            ),
            add,
            run,
            reads=False,
            asks=False,
            columns=_columns,
        ),
        "record": Command(
            "store today's figures in the bank, once per day and cluster",
            ("{}", "{} --from /srv/slurm-output", "{} --dry-run"),
            _add_record,
            _record,
            reads=False,
        ),
        "compose": COMPOSE,
    },
    default="show",
)
