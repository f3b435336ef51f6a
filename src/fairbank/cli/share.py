"""`fairbank share`: fair share in the form of Slurm's sshare, for programs, or as a tree with what moves it."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from fairbank.cli.command import Command, Noun
from fairbank.cli.composing import COMPOSE
from fairbank.cli.like_slurm import add_folder, fit, note, told
from fairbank.cli.options import listed
from fairbank.core.errors import Malformed
from fairbank.core.slurm_numbers import ON_PARENT, SHARES_MAX
from fairbank.core.time import iso
from fairbank.report import forecasts
from fairbank.report.cells import counted, plain
from fairbank.report.columns import Look
from fairbank.report.envelope import as_json, as_yaml, envelope
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
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser
    from fairbank.cli.slurm_says import Shares
    from fairbank.report.sshare import ShareRow

SSHARE = "sshare -a -l -P"
"""Where to look for what could not be read."""


def add(parser: Parser) -> None:
    parser.add_argument(
        "-a",
        "--all",
        action="store_true",
        help="all users (usual: all accounts, and of the users only yourself)",
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
        "-m", "--partition", action="store_true", help="the partition that an association is for"
    )
    parser.add_argument(
        "--set",
        metavar="ACCOUNT=SHARES,...",
        type=_changes,
        help="what if: as it would be with these shares",
    )
    add_folder(parser)
    group = parser.add_argument_group("How to show it")
    group.add_argument(
        "--forecast",
        action="store_true",
        help="when each is back at level 1 (classic rule: factor 0.5), if it pauses",
    )
    form = group.add_mutually_exclusive_group()
    form.add_argument(
        "--tree",
        dest="form",
        action="store_const",
        const="tree",
        help="explained: who is over or under, and what moves it",
    )
    form.add_argument(
        "--json", dest="form", action="store_const", const="json", help="JSON, with a named schema"
    )
    form.add_argument(
        "--yaml", dest="form", action="store_const", const="yaml", help="the same as YAML"
    )
    form.add_argument(
        "--csv",
        dest="form",
        action="store_const",
        const="csv",
        help="for a spreadsheet: cells whole, apart by commas",
    )
    form.add_argument(
        "-p",
        "--bars",
        dest="form",
        action="store_const",
        const="bar",
        help="cells whole, a | behind each: sshare's -p",
    )
    form.add_argument(
        "-P",
        "--parsable",
        "--parsable2",
        dest="form",
        action="store_const",
        const="between",
        help="cells apart by |",
    )
    group.add_argument("-n", "--noheader", action="store_true", help="without heads")
    group.add_argument(
        "-l",
        "--long",
        action="store_true",
        help="with normalised usage, level, limits and running TRES",
    )
    group.add_argument(
        "-o", "--format", metavar="COL%WIDTH,...", help="which columns; names may be cut short"
    )
    group.add_argument("--helpformat", action="store_true", help="list the columns")


def _changes(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in listed(text):
        name, _, shares = each.partition("=")
        number = (
            shares.isascii()
            and shares.isdigit()
            and len(shares) <= 10
            and int(shares) <= SHARES_MAX
        )
        if not (name and (shares == "parent" or number)):
            raise ArgumentTypeError(
                f"{each[:40]!r} is not ACCOUNT=SHARES; write for example chem=60 or chem=parent"
            )
        if name in found:
            raise ArgumentTypeError(f"{name[:40]!r} is there twice; write each account once")
        found[name] = ON_PARENT if shares == "parent" else int(shares)
    return found


COLUMNS_ONLY = {"format": "--format", "long": "--long", "partition": "--partition"}
"""What there is to choose in the form of sshare only."""
WORDS = {
    "tree": "--tree",
    "json": "--json",
    "yaml": "--yaml",
    "csv": "--csv",
    "bar": "--bars",
    "between": "--parsable",
}
ENDINGS = {"csv": LineFormat.COMMAS, "bar": LineFormat.BAR, "between": LineFormat.BETWEEN}


def _fit(options: Namespace) -> None:
    """Raises Malformed for options that would change nothing."""
    if options.forecast and options.form in ("tree", *ENDINGS):
        remedy = "it is a table, or with --json or --yaml for programs"
        raise Malformed(
            f"a forecast has no form {WORDS[options.form]}", field="--forecast", remedy=remedy
        )
    if options.form in ("json", "yaml"):
        fit(options, WORDS[options.form], COLUMNS_ONLY | {"noheader": "--noheader"})
    elif options.forecast or options.form == "tree":
        fit(options, "--forecast" if options.forecast else "--tree", COLUMNS_ONLY)


def run(desk: Desk, options: Namespace) -> int:
    if options.helpformat:
        desk.say(" ".join(field.name for field in FIELDS))
        return 0
    _fit(options)
    fields = parse_fields(options.format) if options.format else None
    found = desk.works.slurm_says.shares(options.folder, desk.now())
    code = told(desk, found.unreadable, SSHARE)
    found = _there(desk, found)
    rows = select_rows(
        found.rows,
        users=_users(desk, options),
        accounts=options.accounts or None,
        users_only=options.users_only,
    )
    if options.forecast:
        _show_forecast(desk, found, rows)
    elif options.form in ("json", "yaml"):
        data = as_data(rows, found.rule)
        document = envelope(
            "fairbank.share/1", iso(found.as_of), found.cluster, data, found.unreadable, Look()
        )
        desk.say(as_json(document) if options.form == "json" else as_yaml(document))
    elif options.form == "tree":
        _show_tree(desk, found, rows)
    else:
        fields = fields or default_fields(
            long=options.long, partitions=options.partition, fair_tree=found.rule.fair_tree
        )
        for line in lines(
            rows, fields, ENDINGS.get(options.form, LineFormat.PADDED), header=not options.noheader
        ):
            desk.say(line)
    return code


def _there(desk: Desk, found: Shares) -> Shares:
    """What was found; with --set as it would be. Raises Malformed where there are none, or only some to compute from."""
    if not found.rows:
        raise Malformed(
            "there is nobody in what Slurm said of fair share",
            field="sshare",
            remedy="look at what it prints: sshare -a",
        )
    if not desk.options.set:
        return found
    if found.unreadable:
        remedy = "mend what is told above first: sacctmgr show associations"
        raise Malformed(
            "with associations left out all other figures would be wrong",
            field="--set",
            remedy=remedy,
        )
    changed = desk.works.slurm_says.reckoned(found, desk.options.set)
    desk.note("Computed from these shares and what users used; Slurm has others.")
    return changed


def _add_record(parser: Parser) -> None:
    add_folder(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be recorded, change nothing"
    )


def _record(desk: Desk, options: Namespace) -> int:
    done = desk.works.history.record(
        desk.client, options.folder, desk.now(), dry_run=options.dry_run
    )
    code = told(desk, done.unreadable, SSHARE)
    of = f"{plain(done.cluster)}, {done.day}"
    if options.dry_run:
        desk.note(f"Nothing is recorded. {of}: {counted(done.kept, 'association')} would be.")
    elif done.kept:
        desk.say(f"{of}: {counted(done.kept, 'association')}")
    else:
        desk.note(f"{of}: recorded before")
    return code


def _users(desk: Desk, options: Namespace) -> Sequence[str] | None:
    if options.all:
        return None
    return options.user or [desk.works.slurm_says.me()]


def _show_tree(desk: Desk, found: Shares, rows: Sequence[ShareRow]) -> None:
    made = table(
        COLUMNS, tree_rows(rows, found.rule), desk.look, desk.room, heads=not desk.options.noheader
    )
    for line in made.lines:
        desk.paint(line)
    note(desk, reading_guide(rows, found.rule, found.backs, desk.options.accounts or ()))


def _show_forecast(desk: Desk, found: Shares, rows: Sequence[ShareRow]) -> None:
    shown = {(row.account, row.user, row.partition) for row in rows}
    backs = [back for back in found.backs if back[:3] in shown]
    if desk.options.form in ("json", "yaml"):
        data = forecasts.as_data(backs, found.rule)
        document = envelope(
            "fairbank.forecast/1", iso(found.as_of), found.cluster, data, found.unreadable, Look()
        )
        desk.say(as_json(document) if desk.options.form == "json" else as_yaml(document))
        return
    made = table(
        forecasts.COLUMNS,
        forecasts.table_rows(backs),
        desk.look,
        desk.room,
        heads=not desk.options.noheader,
    )
    for line in made.lines:
        desk.paint(line)
    note(desk, forecasts.assumptions(found.rule))


COMMAND = Noun(
    "fair share as Slurm has it, now and from day to day",
    {
        "show": Command(
            "shares, usage, and the factor that follows (also without this word)",
            ("fairbank share", "fairbank share --tree -A chem_qmc", "fairbank share --forecast -a"),
            add,
            run,
            reads=False,
            asks=False,
        ),
        "record": Command(
            "have the bank keep today's figures, once a day and cluster",
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
    usual="show",
)
