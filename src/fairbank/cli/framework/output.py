"""Output of lists: table, CSV, delimited text or JSON."""

from __future__ import annotations

import os
import re
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from fairbank.report.cells import folded, plain
from fairbank.report.columns import EXACT, Amount, Summand, with_minutes, with_unit
from fairbank.report.tables import UNBOUND, adds_columns, choose, csv, separate_cells, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.report.columns import Column, Row
    from fairbank.report.tables import TextTable


class Listing(NamedTuple):
    """List to print. `caption` (lines) stands above a table, `totals` below it."""

    schema: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    caption: str | None = None
    totals: Sequence[Row] = ()
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    empty: str = "There is nothing to show."
    more: Mapping[str, object] = {}
    """Further values of `--json`, beside the rows."""
    exact: bool = False
    """True if the table is shown in its full width."""
    fitted: bool = False
    """True if -l is for more rows, so that a table keeps the width of the terminal."""


def shown_columns(context: Context, columns: Sequence[Column]) -> bool:
    """Print the columns if --helpformat was given. Return whether it was.

    A command without columns of its own lists the entries that it would write.
    """
    if context.options.helpformat:
        from fairbank.cli.framework.write import ENTRY_COLUMNS
        from fairbank.report.column_texts import ENTRIES, describe  # only --helpformat pays for it

        command = context.prog if columns else ENTRIES
        there = columns or ENTRY_COLUMNS
        headers = [column.head for column in _columns_of_form(context, there)]
        wide = max(map(len, headers))
        for head in headers:
            line = f"{head:<{wide}}  {describe(command, head)}"
            context.print_lines(folded(line, context.width))
        if len(_columns_of_form(context, there)) == len(there) and len(with_minutes(there)) > len(
            there
        ):
            context.note(f"{EXACT}: --csv and -P also have each amount in whole SU-minutes.")
    return bool(context.options.helpformat)


def _columns_of_form(context: Context, columns: Sequence[Column]) -> Sequence[Column]:
    """Return the columns of this format: for programs each amount also in minutes."""
    form = context.options.form
    if form not in ("csv", "parsable"):
        return columns
    return with_minutes(columns, extra=form == "parsable")


def show(context: Context, listing: Listing) -> int:
    """Print the list in the requested format, then the notes. Return the exit code for success."""
    with context.in_pages():
        _show(context, listing)
    context.note(*context.later_notes)
    context.later_notes.clear()
    return 0


def _show(context: Context, listing: Listing) -> None:
    options, form = context.options, context.format
    columns, rows, header = _chosen(context, listing), listing.rows, not options.noheader
    match options.form:
        case "json":
            context.print_json(listing.schema, rows, listing.warnings, listing.more)
        case "csv":
            context.print_escaped(*csv(columns, rows, form, header=header))
        case "parsable":
            context.print_escaped(
                *separate_cells(columns, rows, form, options.delimiter, header=header)
            )
        case _:
            _show_table(context, listing, columns)


def _chosen(context: Context, listing: Listing) -> list[Column]:
    options, caption = context.options, listing.caption or ""
    wanted = named_columns(context)
    chosen = choose(
        _columns_of_form(context, listing.columns), wanted, extras=_is_unbound(context, listing)
    )
    # Most tables have the unit in their caption, JSON has it as `unit`.
    is_named = options.form is None and context.format.unit in caption
    return chosen if is_named else with_unit(chosen, context.format.units)


def named_columns(context: Context) -> str | None:
    """Return the columns that -o names, or of a table FAIRBANK_FORMAT_BALANCE and the like."""
    options, name = context.options, "_".join(context.prog.split()[1:]).upper()
    default = os.environ.get(f"FAIRBANK_FORMAT_{name}") if options.form is None else None
    return options.format or default


def _show_table(context: Context, listing: Listing, columns: Sequence[Column]) -> None:
    header = not context.options.noheader
    if not listing.rows:
        context.note(*_as_of(listing), listing.empty)
        return
    if header and listing.caption is not None:
        for line in listing.caption.splitlines():
            context.print_escaped(*folded(plain(line), context.width))
        context.print_text()
    made = table(
        columns,
        [*listing.rows, *listing.totals],
        context.format,
        _width(context, listing),
        header=header,
    )
    context.print_escaped(*(colour(made.lines, header=header) if context.colours else made.lines))
    if lost := missing_columns(columns, made):
        adds_up = not any(isinstance(column.show, Summand) for column in lost)
        heads = ",".join(column.head for column in lost)
        how = f"-o +{heads} adds them" if listing.fitted else "-l shows all columns"
        context.note(
            "",
            f"{', '.join(column.head for column in lost)}: not shown, as the terminal is too narrow"
            f"{'' if adds_up else '; so rows do not add up'}. {how}.",
        )
    extra = [column.head for column in columns if column.extra and column.head in made.dropped]
    if extra:
        context.detail(
            f"Columns left out: {', '.join(extra)}; a wider terminal or -o +COL shows them."
        )
    if listing.warnings or listing.notes:
        context.note("", *listing.warnings, *listing.notes)


def _as_of(listing: Listing) -> list[str]:
    """Return the line of the caption that names the bank: perhaps another one was meant."""
    lines = (listing.caption or "").splitlines()
    return [line for line in lines if line.startswith("As of ")]


def missing_columns(columns: Sequence[Column], made: TextTable) -> list[Column]:
    """Return the columns that the table was to show and has dropped."""
    return [column for column in columns if column.head in made.dropped and not column.extra]


def _width(context: Context, listing: Listing) -> int | None:
    """Return the width of tables; unlimited if columns were named or all requested."""
    wanted = context.options.format
    named = bool(wanted) and not adds_columns(wanted)
    is_wide = listing.exact or named or _is_unbound(context, listing)
    return UNBOUND if is_wide else context.table_width


def _is_unbound(context: Context, listing: Listing) -> bool:
    """Return whether -l requests all columns: in a fitted table only for scripts."""
    options = context.options
    return bool(options.long) and (options.form is not None or not listing.fitted)


BOLD, RED, YELLOW, PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
_MARK = re.compile(r"(?:(?<=\s)|^)(!!?|x)(?=\s)")


def colour(lines: Sequence[str], *, header: bool) -> list[str]:
    """Return the header in bold and the marks in colour, which is never the only signal."""
    marked = [
        _MARK.sub(lambda mark: f"{YELLOW if mark[1] == '!' else RED}{mark[1]}{PLAIN}", line)
        for line in lines
    ]
    return [f"{BOLD}{lines[0]}{PLAIN}", *marked[1:]] if header and lines else marked


def caption(context: Context, *, unit: bool = True) -> str:
    """Return `As of 2026-11-21 07:30:12 -05:00   bank darwin   cluster darwin   unit SU`.

    The answer then needs no other line that names the bank.
    """
    context.bank_is_named = True
    parts = [f"As of {context.format.as_of(context.bank_time)}"]
    if context.bank:
        parts.append(f"bank {plain(context.bank)}")
    if context.cluster:
        parts.append(f"cluster {plain(context.cluster)}")
    if unit:
        parts.append(f"unit {context.format.unit}")
    return "   ".join(parts)


def caption_of(context: Context, columns: Sequence[Column]) -> str:
    """Return the caption of a table, which names the unit if a column has amounts."""
    return caption(context, unit=any(isinstance(column.show, Amount) for column in columns))


def source_line(context: Context) -> list[str]:
    """Return the caption for a text that is no table; none if no bank answered."""
    return folded(caption(context, unit=False), context.width) if context.bank else []


def window(context: Context, since: int, until: int) -> str:
    """Return `2026-10-22 07:30:12 .. 2026-11-21 07:30:12`, the time that sums are of.

    Args:
        context: the command, whose format has the time zone.
        since: the start, in seconds since 1970.
        until: the end, in seconds since 1970.
    """
    return f"{context.format.moment(since)} .. {context.format.moment(until)}"


CLEAR = "\x1b[H\x1b[2J\x1b[3J"


def run_watched(context: Context, once: Callable[[], int]) -> int:
    """Run once, or with --watch again and again until interrupted."""
    while context.options.watch:
        if context.is_for_people:
            sys.stdout.write(CLEAR)
        once()
        sys.stdout.flush()
        time.sleep(context.options.watch)
    return once()
