"""Options of several commands, with Slurm's short names."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentTypeError
from typing import TYPE_CHECKING

from fairbank.cli.framework.parser import HelpAction, Parser
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.report.columns import UNITS

if TYPE_CHECKING:
    from argparse import ArgumentParser, _ArgumentGroup, _MutuallyExclusiveGroup

WATCH_MIN_SECONDS = 5


def add_common(parser: Parser) -> None:
    """Add the options of every command."""
    group = parser.add_argument_group("Common options")
    group.add_argument("-h", "--help", action=HelpAction, nargs=0, help="show this help")
    group.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="print notes, such as which columns a table left out",
    )
    group.add_argument(
        *parser.free("-q", "--quiet"), action="store_true", help="print only the answer and errors"
    )
    group.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="when to use colours (default: auto; NO_COLOR turns them off)",
    )


def add_server(parser: Parser) -> None:
    """Add the options of every command that sends requests to the bank."""
    group = parser.add_argument_group("Bank and user")
    group.add_argument(
        "--server",
        metavar="ADDRESS",
        help="unix:/run/fairbank/fairbank.sock or http://host:port (FAIRBANK_SERVER)",
    )
    group.add_argument(
        "--as",
        dest="acting_as",
        metavar="USER",
        type=printable,
        help="act as another user; for staff, recorded in the journal",
    )


def add_output(parser: Parser, *, watch: bool = False) -> None:
    """Add the options of every command that prints a list."""
    group = parser.add_argument_group("Output")
    form = group.add_mutually_exclusive_group()
    form.add_argument(
        "--json",
        dest="form",
        action="store_const",
        const="json",
        help="print JSON, with the name of its schema",
    )
    form.add_argument(
        "--csv",
        dest="form",
        action="store_const",
        const="csv",
        help="print CSV for a spreadsheet, amounts also in SU-minutes",
    )
    form.add_argument(
        "-P",
        "--parsable",
        dest="form",
        action="store_const",
        const="parsable",
        help="pipe-separated, no trailing delimiter",
    )
    group.add_argument(
        "--delimiter",
        metavar="TEXT",
        type=printable,
        default="|",
        help="delimiter of --parsable instead of |",
    )
    _add_table(group)
    group.add_argument(
        "--no-pager", action="store_true", help="do not use a pager (as with PAGER=cat)"
    )
    if watch:
        group.add_argument(
            "--watch",
            metavar="SECS",
            type=_watch,
            help=f"repeat every SECS seconds, at least {WATCH_MIN_SECONDS}",
        )


def _add_table(group: _ArgumentGroup) -> None:
    group.add_argument("-n", "--noheader", action="store_true", help="no header line")
    group.add_argument(
        "-o",
        "--format",
        metavar="COL%WIDTH,...",
        help="columns to show; +COL adds to the default ones",
    )
    group.add_argument("-l", "--long", action="store_true", help="show all columns")
    group.add_argument("--helpformat", action="store_true", help="list the columns")
    group.add_argument(
        "--units",
        choices=tuple(UNITS),
        default="h",
        help="unit of amounts: minutes, hours (SU, default), thousands or millions of SU",
    )


def add_nothing(parser: Parser) -> None:
    """Add no options."""


def add_account(parser: Parser, *, resource: bool = True) -> None:
    parser.add_argument(
        "-A", "--account", metavar="PROJECT", help="only this project, by its Slurm account"
    )
    if resource:
        parser.add_argument(
            "-r", "--resource", metavar="NAME", help="only this resource, such as cpu or gpu"
        )


def add_accounts(parser: Parser, *, resource: bool = True) -> None:
    """Add -A and -r as lists."""
    parser.add_argument(
        "-A",
        "--account",
        metavar="PROJECT,...",
        type=listed,
        help="only these projects, by their Slurm accounts",
    )
    if resource:
        parser.add_argument(
            "-r",
            "--resource",
            metavar="NAME,...",
            type=listed,
            help="only these resources, such as cpu or gpu",
        )


def add_users(parser: ArgumentParser | _MutuallyExclusiveGroup) -> None:
    parser.add_argument(
        "-u", "--user", metavar="USER,...", type=listed, help="only these users, by name or number"
    )


def add_clusters(
    parser: ArgumentParser | _ArgumentGroup, about: str, *, several: bool = False
) -> None:
    """Add -M, --clusters and --cluster: one name, or with `several` a list."""
    dest, kind = ("clusters", listed) if several else ("cluster", printable)
    parser.add_argument(
        "-M",
        "--clusters",
        dest=dest,
        metavar="NAME,..." if several else "NAME",
        type=kind,
        help=about,
    )
    parser.add_argument("--cluster", dest=dest, type=kind, help=SUPPRESS)


def add_period(parser: Parser, since: str, until: str = "now") -> None:
    """Add -S and -E; `since` and `until` are the defaults as text."""
    when = "now-7days, midnight, 2026-11-01T00:00"
    parser.add_argument(
        "-S", "--starttime", metavar="TIME", help=f"start of the period: {when} (default: {since})"
    )
    parser.add_argument(
        "-E", "--endtime", metavar="TIME", help=f"end of the period, excluded (default: {until})"
    )


def add_limit(parser: Parser, usual: int) -> None:
    parser.add_argument(
        "--limit",
        metavar="N",
        type=count,
        default=usual,
        help=f"maximum number of rows; 0: all (default: {usual})",
    )


def add_writing(parser: Parser, *, reason: str = "required", keyed: bool = True) -> None:
    """Add the options of a command that writes: --reason, --dry-run, --yes, --idempotency-key."""
    group = parser.add_argument_group("Safety")
    if reason != "none":
        group.add_argument(
            "--reason",
            metavar="TEXT",
            required=reason == "required",
            type=_reason,
            help="reason, stored in the journal",
        )
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="show the entries that would be written, change nothing",
    )
    group.add_argument(
        "--yes",
        action="store_true",
        help="do not ask before a change that removes, ends or is large (only a terminal is asked)",
    )
    if keyed:
        once = "for scripts: a request repeated with the same key is applied once"
        group.add_argument("--idempotency-key", metavar="KEY", type=_key, help=once)


def add_allocation(parser: Parser) -> None:
    """Add the allocation as an argument."""
    parser.add_argument(
        "allocation", metavar="ALLOC", type=number, help="the number of the allocation"
    )


def add_project(parser: Parser) -> None:
    """Add the project as an argument."""
    parser.add_argument(
        "project", metavar="PROJECT", help="account, group or number of the project"
    )


# Readers of one word; argparse tells what they raise.


def count(said: str) -> int:
    """Return a whole number from 0."""
    return _number(said, 10**9 - 1)


def at_least_one(said: str) -> int:
    """Return a whole number from 1."""
    return _number(said, 10**9 - 1, least=1)


def unix_id(said: str) -> int:
    """Return the number of a user or group."""
    return _number(said, ids.UID_MAX)


def _number(said: str, most: int, least: int = 0) -> int:
    if not (said.isascii() and said.isdigit()) or (least and not said.strip("0")):
        raise ArgumentTypeError(f"{said[:40]!r} is not a whole number from {least} on")
    if len(said) > len(str(most)) or int(said) > most:
        raise ArgumentTypeError(f"{said[:40]} is too large a number: at most {most}")
    return int(said)


def listed(said: str) -> list[str]:
    """Return comma-separated words, each once."""
    words = [word.strip() for word in said.split(",")]
    if all(words):
        return list(dict.fromkeys(map(printable, words)))
    raise ArgumentTypeError(
        f"{said[:40]!r} is not a list: words with commas between them, no blanks"
    )


def counts(said: str) -> list[int]:
    """Return comma-separated whole numbers from 0."""
    return [count(word) for word in listed(said)]


def number(said: str) -> int:
    """Return the number of an allocation, job record or token."""
    if said.isascii() and said.isdigit() and len(said) <= 16 and 0 < int(said) <= ids.ID_MAX:
        return int(said)
    raise ArgumentTypeError(f"{said[:40]!r} is not a number of the bank: whole, and from 1 on")


def _watch(said: str) -> int:
    seconds = count(said)
    if seconds < WATCH_MIN_SECONDS:
        raise ArgumentTypeError(f"not more often than every {WATCH_MIN_SECONDS} s")
    return seconds


def printable(said: str) -> str:
    """Return printable ASCII text, as a header or a delimiter needs it."""
    if said and said.isascii() and said.isprintable():
        return said
    raise ArgumentTypeError("plain printable ASCII, please")


def file_read(said: str) -> str:
    """Return a file name; - is standard input."""
    return "/dev/stdin" if said == "-" else said


def file_written(said: str) -> str:
    """Return the name of a file to write. Not -: the table may go to standard output."""
    if said == "-":
        raise ArgumentTypeError("- is no file: name one, or /dev/stdout")
    return said


def _reason(said: str) -> str:
    try:
        if said.strip():
            return ids.comment(said, field="--reason")
    except InvalidInput as bad:
        raise ArgumentTypeError(f"{bad.message}: {bad.remedy}") from bad
    raise ArgumentTypeError("say why, in a few words")


def _key(said: str) -> str:
    try:
        return ids.key(said)
    except InvalidInput as bad:
        raise ArgumentTypeError(f"{bad.message}: {bad.remedy}") from bad
