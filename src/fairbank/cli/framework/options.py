"""Options of several commands, with Slurm's short names."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentTypeError
from functools import partial
from typing import TYPE_CHECKING, Any

from fairbank.cli.framework.parser import HelpAction, OfCluster, Parser
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.report.columns import UNITS

if TYPE_CHECKING:
    from argparse import ArgumentParser, _ActionsContainer, _ArgumentGroup, _MutuallyExclusiveGroup
    from collections.abc import Callable, Mapping

WATCH_MIN_SECONDS = 5


def add_option(parser: _ActionsContainer, spec: str, about: str | None = None, **more: Any) -> None:
    """Add an option or argument, written as the help shows it.

    Args:
        parser: the parser, or a group of it.
        spec: names and placeholder: `-g, --group GROUP`; a flag has no placeholder: `--all`. An
            argument has the field of the options as its name: `script JOBFILE`.
        about: the line of the help.
        more: further parameters of argparse's `add_argument`.
    """
    *names, last = spec.split()
    if names and not last.startswith("-"):
        more["metavar"] = last
    else:
        names.append(last)
        if not more.keys() & {"action", "choices"}:
            more["action"] = "store_true"
    parser.add_argument(*(name.rstrip(",") for name in names), help=about, **more)


def add_forms(group: _ActionsContainer, forms: Mapping[str, str]) -> None:
    """Add the forms of the output, of which one can be requested: `options.form` has its name.

    `forms` has their help by flags, such as `-P, --parsable`; the first long flag is the name.
    """
    choice = group.add_mutually_exclusive_group()
    for flags, about in forms.items():
        name = flags[flags.index("--") + 2 :].split(",")[0]
        add_option(choice, flags, about, dest="form", action="store_const", const=name)


def add_common(parser: Parser) -> None:
    """Add the options of every command."""
    group = parser.add_argument_group("Common options")
    add_option(group, "-h, --help", "show this help", action=HelpAction, nargs=0)
    about = "print notes, such as which columns a table left out"
    add_option(group, "-v, --verbose", about, action="count", default=0)
    add_option(group, " ".join(parser.free("-q", "--quiet")), "print only the answer and errors")
    add_option(group, "--utc", "times in UTC, as input and as output")
    about = "when to use colours (default: auto; NO_COLOR turns them off)"
    add_option(group, "--color", about, choices=("auto", "always", "never"), default="auto")


def add_server(parser: Parser) -> None:
    """Add the options of every command that sends requests to the bank."""
    group = parser.add_argument_group("Bank and user")
    about = "unix:/run/fairbank/fairbank.sock or http://host:port (FAIRBANK_SERVER)"
    add_option(group, "--server ADDRESS", about)
    about = "act as another user; for staff, recorded in the journal"
    add_option(group, "--as USER", about, dest="acting_as", type=printable)


def add_output(parser: Parser, *, watch: bool = False) -> None:
    """Add the options of every command that prints a list."""
    group = parser.add_argument_group("Output")
    add_forms(
        group,
        {
            "--json": "print JSON, with the name of its schema",
            "--csv": "print CSV for a spreadsheet, amounts also in SU-minutes",
            "-P, --parsable": "pipe-separated, no trailing delimiter",
        },
    )
    about = "delimiter of --parsable instead of |"
    add_option(group, "--delimiter TEXT", about, type=printable, default="|")
    # In a command that takes the options of sbatch, -n is the number of tasks.
    add_option(group, ", ".join(parser.free("-n", "--noheader")), "no header line")
    about = "columns to show; +COL,... adds to the default ones"
    add_option(group, "-o, --format COL%WIDTH,...", about)
    if parser.free("-l"):
        add_option(group, "-l, --long", "show all columns")
    add_option(group, "--helpformat", "list the columns, each with its meaning")
    about = "unit of amounts: minutes, hours (SU, default), thousands or millions of SU"
    add_option(group, "--units", about, choices=tuple(UNITS), default="h")
    add_option(group, "--no-pager", "do not use a pager (as with PAGER=cat)")
    if watch:
        about = f"repeat every SECS seconds, at least {WATCH_MIN_SECONDS}"
        add_option(group, "--watch SECS", about, type=_watch)


def add_json(parser: Parser) -> None:
    """Add --json to a command that prints no list."""
    add_forms(parser, {"--json": "print JSON, with the name of its schema"})


def add_nothing(parser: Parser) -> None:
    """Add no options."""


def add_account(parser: Parser) -> None:
    """Add -A and -r."""
    add_option(parser, "-A, --account PROJECT", "only this project, by its Slurm account")
    add_option(parser, "-r, --resource NAME", "only this resource, such as cpu or gpu")


def add_accounts(parser: Parser, *, resource: bool = True) -> None:
    """Add -A and -r as lists."""
    about = "only these projects, by their Slurm accounts"
    add_option(parser, "-A, --account PROJECT,...", about, type=split_list)
    if resource:
        about = "only these resources, such as cpu or gpu"
        add_option(parser, "-r, --resource NAME,...", about, type=split_list)


def add_group(parser: Parser, about: str = "only of this Unix group, by name or number") -> None:
    add_option(parser, "-g, --group GROUP", about)


def add_users(parser: ArgumentParser | _MutuallyExclusiveGroup) -> None:
    about = "only these users, by name or number"
    add_option(parser, "-u, --user USER,...", about, type=split_list)


def add_clusters(
    parser: ArgumentParser | _ArgumentGroup, about: str, *, several: bool = False
) -> None:
    """Add -M, --clusters and --cluster.

    Args:
        parser: the parser, or a group of its options.
        about: the help text, with the default.
        several: accept a list, in `clusters`; else one name, in `cluster`.
    """
    dest, kind = ("clusters", split_list) if several else ("cluster", cluster_name)
    placeholder = "NAME,..." if several else "NAME"
    add_option(parser, f"-M, --clusters {placeholder}", about, dest=dest, type=kind)
    parser.add_argument("--cluster", dest=dest, type=kind, help=SUPPRESS)


def add_period(parser: Parser, since: str, until: str = "now") -> None:
    """Add -S and -E.

    Args:
        since: the default start as the help shows it. The command itself applies it.
        until: the default end as the help shows it.
    """
    when = "now-7days, midnight, 2026-11-01T00:00"
    add_option(parser, "-S, --starttime TIME", f"start of the period: {when} (default: {since})")
    add_option(parser, "-E, --endtime TIME", f"end of the period, excluded (default: {until})")


def add_limit(parser: Parser, default: int, about: str = "maximum number of rows") -> None:
    """Add --limit.

    Args:
        default: the default number of rows; 0: all.
        about: the help text, without the default.
    """
    about = f"{about}, or all (default: {default or 'all'})"
    add_option(parser, "--limit N", about, type=row_limit, default=default)


def add_writing(parser: Parser, *, reason: str = "required", keyed: bool = True) -> None:
    """Add the options of a command that writes: --reason, --dry-run, --yes, --idempotency-key.

    Args:
        reason: "required" or "optional"; "none" adds no --reason.
        keyed: add --idempotency-key.
    """
    parser.refuses_repeats = True
    group = parser.add_argument_group("Safety")
    if reason != "none":
        about = "reason, stored in the journal"
        add_option(group, "--reason TEXT", about, required=reason == "required", type=_reason)
    add_option(group, "--dry-run", "show the entries that would be written, change nothing")
    about = "do not ask before a change that removes, ends or is large; required for one that"
    add_option(
        group, "--yes", f"{about} removes, ends or exceeds the credit if there is no terminal"
    )
    if keyed:
        about = "for scripts: a request repeated with the same key is applied once"
        add_option(group, "--idempotency-key KEY", about, type=_key)


def add_allocation(parser: Parser) -> None:
    """Add the allocation: its number as an argument, or its project and resource."""
    about = "the number of the allocation; or name it with -A and -r"
    add_option(parser, "allocation ALLOC", about, nargs="?", type=number)
    add_option(parser, "-A, --account PROJECT", "its project, by its Slurm account")
    add_option(parser, "-r, --resource NAME", "its resource, if the project has several")


def add_project(parser: Parser) -> None:
    """Add the project as an argument."""
    add_option(parser, "project PROJECT", "account, group or number of the project")


def add_user(parser: Parser) -> None:
    """Add the user as an argument."""
    add_option(parser, "user USER", "a user, by name or number")


def add_config(parser: Parser) -> None:
    """Add --config of the commands on the bank's own host."""
    about = "the bank's settings (FAIRBANK_CONFIG; default: where fairbank init put them)"
    add_option(parser, "--config FILE", about)


# Parsers of one argument; argparse prints the error that they raise.


def count(text: str) -> int:
    """Return a whole number from 0."""
    return _number(text, 10**9 - 1)


def at_least_one(text: str) -> int:
    """Return a whole number from 1."""
    return _number(text, 10**9 - 1, least=1)


def row_limit(text: str) -> int:
    """Return a number of rows; 0 for `all`. The bank's routes refuse 0 rows, too."""
    if text == "all":
        return 0
    try:
        return at_least_one(text)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{error}; or all") from error


def unix_id(text: str) -> int:
    """Return the number of a user or group."""
    return _number(text, ids.UID_MAX)


def _number(text: str, most: int, least: int = 0) -> int:
    if not (text.isascii() and text.isdigit()) or (least and not text.strip("0")):
        raise ArgumentTypeError(f"{text[:40]!r} is not a whole number from {least} on")
    if len(text) > len(str(most)) or int(text) > most:
        raise ArgumentTypeError(f"{text[:40]} is too large a number: at most {most}")
    return int(text)


def split_list(text: str) -> list[str]:
    """Return comma-separated words, each once."""
    words = [word.strip() for word in text.split(",")]
    # Names may have letters outside ASCII.
    if all(words) and text.isprintable():
        return list(dict.fromkeys(words))
    raise ArgumentTypeError(
        f"{text[:40]!r} is not a list: words with commas between them, no blanks"
    )


def job_ids(text: str) -> list[int] | OfCluster:
    """Return comma-separated job ids, perhaps each with the same cluster: `darwin/812301`."""
    names = [word.rpartition("/") for word in split_list(text)]
    numbers = [_number(number, ids.JOB_ID_MAX, least=1) for _, _, number in names]
    clusters = {cluster + slash for cluster, slash, _ in names}
    if clusters == {""}:
        return numbers
    if len(clusters) > 1:
        raise ArgumentTypeError(f"{text[:40]!r} are not jobs of one cluster")
    return OfCluster(cluster_name(names[0][0]), numbers)


def job_of_cluster(kind: Callable[[str], Any], text: str) -> Any:
    """Return a job that `kind` reads, perhaps with its cluster: `darwin/812301`."""
    cluster, slash, job = text.rpartition("/")
    return OfCluster(cluster_name(cluster), kind(job)) if slash else kind(job)


def number(text: str) -> int:
    """Return the number of an allocation, job record or token."""
    if text.isascii() and text.isdigit() and len(text) <= 16 and 0 < int(text) <= ids.ID_MAX:
        return int(text)
    raise ArgumentTypeError(f"{text[:40]!r} is not a whole number from 1 on")


def _watch(text: str) -> int:
    seconds = count(text)
    if seconds < WATCH_MIN_SECONDS:
        raise ArgumentTypeError(f"not more often than every {WATCH_MIN_SECONDS} s")
    return seconds


def cluster_name(text: str) -> str:
    """Return printable text: names may have letters outside ASCII."""
    if text and text.isprintable():
        return text
    raise ArgumentTypeError("only printable text")


def printable(text: str) -> str:
    """Return printable ASCII text, as a header, or a delimiter needs it."""
    if text and text.isascii() and text.isprintable():
        return text
    raise ArgumentTypeError("only printable ASCII")


def file_read(text: str) -> str:
    """Return a file name; - is standard input."""
    return "/dev/stdin" if text == "-" else text


def file_written(text: str) -> str:
    """Return the name of a file to write. Not -: the table may go to standard output."""
    if text == "-":
        raise ArgumentTypeError("- is not a file: name one, or /dev/stdout")
    return text


def _reason(text: str) -> str:
    return _checked(partial(ids.reason, field="--reason"), text)


def _key(text: str) -> str:
    return _checked(ids.key, text)


def _checked(check: Callable[[str], str], text: str) -> str:
    """Return the checked text, with the bank's own message if it is refused."""
    try:
        return check(text)
    except InvalidInput as bad:
        raise ArgumentTypeError(f"{bad.message}: {bad.remedy}") from bad
