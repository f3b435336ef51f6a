"""How a list is spoken: as a table with its notes, for a spreadsheet, for a script, or as JSON."""

from __future__ import annotations

import os
import re
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from fairbank.report.cells import folded, plain
from fairbank.report.columns import UNITS, Summand, with_minutes
from fairbank.report.envelope import as_json, envelope
from fairbank.report.tables import WIDE, choose, csv, separated, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fairbank.cli.desk import Desk
    from fairbank.report.columns import Column, Row


class Listing(NamedTuple):
    """What a command has to show. `caption` (lines) stands above a table, `total` below it, `warnings` and `notes` are told beside it."""

    schema: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    caption: str | None = None
    total: Row | None = None
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    empty: str = "There is nothing to show."
    more: Mapping[str, object] = {}
    """What else `--json` is to hold, beside the rows."""
    exact: bool = False
    """Whether the table is shown as wide as it is."""


def shown_columns(desk: Desk, columns: Sequence[Column]) -> bool:
    """Whether `--helpformat` was asked for, and is done."""
    if desk.options.helpformat:
        desk.say(" ".join(column.head for column in _there(desk, columns)))
    return bool(desk.options.helpformat)


def _there(desk: Desk, columns: Sequence[Column]) -> Sequence[Column]:
    """The columns that there are in the form asked for: for programs each amount in minutes too."""
    form = desk.options.form
    return (
        with_minutes(columns, extra=form == "parsable") if form in ("csv", "parsable") else columns
    )


def show(desk: Desk, listing: Listing) -> None:
    """Speak `listing` in the form that was asked for, then whatever else there is to note."""
    with desk.in_pages():
        _show(desk, listing)
    for line in desk.later:
        desk.note(line)
    desk.later.clear()


def _show(desk: Desk, listing: Listing) -> None:
    options = desk.options
    columns = choose(
        _there(desk, listing.columns), options.format or _usual_format(desk), extras=options.long
    )
    match options.form:
        case "json":
            desk.say(as_json(_document(desk, listing)))
        case "csv":
            _say(desk, csv(columns, listing.rows, desk.look, heads=not options.noheader))
        case "parsable":
            _say(
                desk,
                separated(
                    columns, listing.rows, desk.look, options.delimiter, heads=not options.noheader
                ),
            )
        case _:
            _show_table(desk, listing, columns)


def wants(desk: Desk, columns: Sequence[Column], head: str) -> bool:
    """Whether the column with this head will be shown, or its minutes, if there is room: what costs a question is asked only then."""
    options = desk.options
    chosen = choose(
        _there(desk, columns), options.format or _usual_format(desk), extras=options.long
    )
    found = next((column for column in chosen if column.head in (head, f"{head}-MINUTES")), None)
    return found is not None and (not found.extra or (options.form is None and desk.room >= WIDE))


def _usual_format(desk: Desk) -> str | None:
    """FAIRBANK_FORMAT_BALANCE and the like; it is for people's tables, not for scripts."""
    name = "_".join(desk.prog.split()[1:]).upper()
    return os.environ.get(f"FAIRBANK_FORMAT_{name}") if desk.options.form is None else None


def _document(desk: Desk, listing: Listing) -> Mapping[str, object]:
    return {
        **envelope(
            listing.schema, desk.as_of, desk.cluster, listing.rows, listing.warnings, desk.look
        ),
        **listing.more,
    }


def _say(desk: Desk, lines: Sequence[str]) -> None:
    for line in lines:
        desk.paint(line)


def _show_table(desk: Desk, listing: Listing, columns: Sequence[Column]) -> None:
    heads = not desk.options.noheader
    if not listing.rows:
        desk.note(listing.empty)
        return
    if heads and listing.caption is not None:
        for line in listing.caption.splitlines():
            _say(desk, folded(plain(line), desk.room))
        desk.say()
    rows = [*listing.rows, listing.total] if listing.total is not None else listing.rows
    made = table(columns, rows, desk.look, _room(desk, listing), heads=heads)
    _say(desk, coloured(made.lines, heads=heads) if desk.colours else made.lines)
    if (
        lost := [head for head in made.dropped if head in _summands(columns)]
    ) and not desk.options.quiet:
        desk.note("")
        desk.note(
            f"{', '.join(lost)}: not shown for want of width, so rows do not add up; -l shows all."
        )
    if made.dropped:
        desk.detail(f"No room for {', '.join(made.dropped)}; a wider window or -o +COL shows them.")
    if (listing.warnings or listing.notes) and not desk.options.quiet:
        desk.note("")
    for line in (*listing.warnings, *listing.notes):
        desk.note(line)


def _summands(columns: Sequence[Column]) -> list[str]:
    """The heads of the usual columns without which the amounts of a row do not add up: that one is lacking is always told."""
    return [
        column.head for column in columns if isinstance(column.show, Summand) and not column.extra
    ]


def _room(desk: Desk, listing: Listing) -> int:
    """As wide as the terminal; without bound when the columns were named one by one, or all were asked for."""
    wanted = desk.options.format
    named = bool(wanted) and not all(each.strip().startswith("+") for each in wanted.split(","))
    return UNBOUND if listing.exact or named or desk.options.long else desk.room


UNBOUND = 1_000_000
BOLD, RED, YELLOW, PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
_MARK = re.compile(r"(?:(?<=\s)|^)(!!?|x)(?=\s)")


def coloured(lines: Sequence[str], *, heads: bool) -> list[str]:
    """The heads bold, and the marks that are there anyway in colour: it is never the only signal."""
    marked = [
        _MARK.sub(lambda mark: f"{YELLOW if mark[1] == '!' else RED}{mark[1]}{PLAIN}", line)
        for line in lines
    ]
    return [f"{BOLD}{lines[0]}{PLAIN}", *marked[1:]] if heads and lines else marked


def caption(desk: Desk, *, unit: bool = True) -> str:
    """`As of 2026-11-21 07:30:12 -05:00   cluster darwin   unit SU`."""
    parts = [f"As of {desk.look.as_of(desk.bank_time)}"]
    if desk.cluster:
        parts.append(f"cluster {plain(desk.cluster)}")
    if unit:
        parts.append(f"unit {UNITS[desk.look.units]}")
    return "   ".join(parts)


CLEAR = "\x1b[H\x1b[2J\x1b[3J"


def watched(desk: Desk, once: Callable[[], int]) -> int:
    """`once`, or with --watch again and again until somebody interrupts it."""
    while desk.options.watch:
        if desk.for_people:
            sys.stdout.write(CLEAR)
        once()
        sys.stdout.flush()
        time.sleep(desk.options.watch)
    return once()
