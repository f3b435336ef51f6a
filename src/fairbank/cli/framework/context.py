"""Context of a running command: options, bank client, clock, and output on the terminal."""

from __future__ import annotations

import os
import select
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fairbank.cli.framework.client_settings import Settings, read_client_settings
from fairbank.cli.framework.host import Local, zone_name
from fairbank.cli.framework.screen import pager_of, show_text, terminal_width
from fairbank.core.errors import InvalidInput, NotFound, Unavailable
from fairbank.core.time import Instant, check_unit, parse_instant, parse_moment
from fairbank.report.cells import folded, plain
from fairbank.report.columns import DisplayFormat
from fairbank.report.tables import JsonSource, as_json, envelope
from fairbank.rest.client import Client
from fairbank.rest.client.response import CHECK

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Query = Mapping[str, object]

PAGE = 1_000
"""Rows of one request: the maximum of the bank."""
Row = dict[str, Any]
_NOTHING: Mapping[str, object] = {}


class Terminal:
    """Output of a command under its options."""

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self._paged: list[str] | None = None
        self._has_answered = False

    @contextmanager
    def in_pages(self) -> Iterator[None]:
        """Collect the output inside, and show it with a pager if it is longer than the screen."""
        self._paged = [] if self.is_for_people and pager_of(self.options, os.environ) else None
        try:
            yield
        finally:
            self._flush_pager()

    def _flush_pager(self) -> None:
        lines, self._paged = self._paged, None
        if lines:
            show_text("\n".join(lines), pager_of(self.options, os.environ))

    @property
    def is_for_people(self) -> bool:
        """Return whether stdout is a terminal."""
        return sys.stdout.isatty()

    @property
    def zone(self) -> tzinfo:
        """Return the time zone of input and output."""
        return UTC if self.options.utc else Local()

    @property
    def zone_name(self) -> str:
        """Return the time zone in the form for the bank. Raises InvalidInput if it has no name."""
        return "UTC" if self.options.utc else zone_name()

    @property
    def bank_time(self) -> Instant:
        """Return the time that counts as now."""
        return self.now()

    def now(self) -> Instant:
        """Return the time of this host."""
        return Instant(int(time.time()))

    @property
    def format(self) -> DisplayFormat:
        form = getattr(self.options, "form", None)
        return DisplayFormat(
            units=getattr(self.options, "units", "h"),
            separators=self.is_for_people and form is None,
            zone=self.zone,
            exact=form is not None,
            year=datetime.fromtimestamp(self.bank_time, self.zone).year,
        )

    def in_zone(self, text: str) -> str:
        """Return a sentence with its UTC times in the time zone of the output."""
        return DisplayFormat(zone=self.zone).sentence(text)

    @property
    def width(self) -> int:
        return terminal_width()

    @property
    def table_width(self) -> int | None:
        """Return the width of tables; None, no limit, in a pipe or file, unless COLUMNS is set."""
        return self.width if self.is_for_people or os.environ.get("COLUMNS") else None

    @property
    def colours(self) -> bool:
        wanted = getattr(self.options, "color", "auto")
        return wanted == "always" or (
            wanted == "auto" and self.is_for_people and not os.environ.get("NO_COLOR")
        )

    def print_text(self, text: str = "") -> None:
        """Print lines of the answer. Control characters are escaped; a line end ends the line, so
        names that others chose go through `plain` first.
        """
        self.print_escaped(*map(plain, text.split("\n")))

    def print_lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.print_text(line)

    def print_escaped(self, *lines: str) -> None:
        """Print lines that are already escaped and may contain our colours."""
        self._has_answered = True
        for line in lines:
            if self._paged is None:
                print(line)
            else:
                self._paged.append(line)

    def note(self, *lines: str, fold: bool = True) -> None:
        """Print notes on stderr, with times in the zone of the output, folded to the terminal's
        width; -q suppresses them.
        """
        if not lines or getattr(self.options, "quiet", False):
            return
        self._flush_pager()
        sys.stdout.flush()
        for line in map(self.in_zone, lines):
            shown = folded(plain(line), self.width) if fold else [plain(line)]
            print(*shown, sep="\n", file=sys.stderr)

    def detail(self, line: str) -> None:
        """Print a note only with -v."""
        if getattr(self.options, "verbose", 0):
            self.note(line)

    def note_places(self, places: Mapping[str, str]) -> None:
        """Print which settings and which store a command on the bank's host uses."""
        self.note(*(f"{name:<9}{place}" for name, place in places.items()), fold=False)

    def confirm(self, question: str, *, needs_yes: bool = False) -> bool:
        """Ask on a terminal whether to continue, unless --yes. Return the answer.

        Without a terminal the answer is yes, except for a change that removes, ends or replaces
        something, or charges what no credit covers: that `needs_yes`. Raises InvalidInput.
        """
        if self.options.yes:
            return True
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            if not needs_yes:
                return True
            raise InvalidInput(
                f"there is no terminal to ask on, so nothing was changed: {question}",
                field="--yes",
                remedy="add --yes to do it without a question",
            )
        sys.stdout.flush()
        _discard_input()
        lines = folded(f"{plain(question)} [y/N]", self.width - 1)
        print(*lines, sep="\n", end=" ", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")


def _discard_input() -> None:
    """Discard lines typed or pasted before the question: none of them can be its answer."""
    import termios  # only a question needs it

    for _ in range(40):  # bounded: at the end of the input, select reports it readable for ever
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
        # A terminal delivers a paste of more than 4 KiB in parts, with short pauses between them.
        if not select.select([sys.stdin], [], [], 0.05)[0]:
            return


class Context(Terminal):
    """Surroundings of one command: `prog` is its name as called, `words` are its arguments."""

    def __init__(self, options: Namespace, prog: str, words: Sequence[str]) -> None:
        super().__init__(options)
        self.prog, self._words = prog, words
        self.as_of: str | None = None
        """Time of the bank's last answer, by its own clock."""
        self.bank: str | None = None
        """Name of the bank that answered."""
        self.bank_is_named = False
        """True if the text of the answer has the bank's name, such as in its caption."""
        self.cluster: str | None = self._named_cluster
        """Cluster that the answer is about: that of -M, or one that the command reads; None if it
        is not about just one.
        """
        self.later_notes: list[str] = []
        """Notes to print after the answer."""

    @property
    def command_line(self) -> str:
        """Return the command as it was typed, for the provenance of its output."""
        import shlex  # 1 ms, only for the provenance

        return f"{self.prog} {shlex.join(self._words)}"

    @property
    def _named_cluster(self) -> str | None:
        """Return the cluster of -M, if just one was given."""
        values = vars(self.options)
        clusters = values.get("clusters") or [values.get("cluster")]
        return clusters[0] if len(clusters) == 1 else None

    @cached_property
    def settings(self) -> Settings:
        return read_client_settings(
            {"server": getattr(self.options, "server", None), "cluster": self._named_cluster},
            os.environ,
        )

    @cached_property
    def client(self) -> Client:
        return Client(
            self.settings.address,
            signer=self.settings.signer(),
            acting_as=getattr(self.options, "acting_as", None),
            bank_file=self.settings.bank_file,
            on_answer=self.keep_source,
        )

    @cached_property
    def has_several_clusters(self) -> bool:
        """Return whether the number of a job names no single job: each cluster has its own."""
        return len(self.get("/cluster")["data"]) > 1

    def get(self, path: str, query: Query = _NOTHING) -> dict[str, Any]:
        """Return an answer of the bank. None is left out of the query."""
        answer = self.client.get(path, query)
        if "data" not in answer:
            raise Unavailable(
                f"the server at {self.settings.address} is not a bank", field="server", remedy=CHECK
            )
        return answer

    def keep_source(self, answer: Mapping[str, Any]) -> None:
        """Keep the bank's name and the time of an answer, for the output."""
        self.bank, self.as_of = answer.get("bank") or self.bank, answer.get("as_of") or self.as_of

    def name_bank(self) -> None:
        """Name the bank of a text that has not named it yet: perhaps another was meant.

        Called again at the end of each command. Where stdout has nothing, it goes to stderr.
        """
        of_script = getattr(self.options, "form", None) or getattr(self.options, "noheader", False)
        if self.bank and not of_script and not self.bank_is_named:
            show = self.print_text if self._has_answered else self.note
            show(f"bank {plain(self.bank)}")
            self.bank_is_named = True

    def print_json(
        self,
        schema: str,
        data: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        warnings: Sequence[str] = (),
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """Print an answer as JSON (`report.tables.envelope`).

        Args:
            schema: name and version of the schema, such as `fairbank.usage/2`.
            data: the rows of a list, or one object.
            warnings: sentences for the field `warnings`.
            more: other fields of the document; None: no others.
        """
        source = JsonSource(self.bank, self.as_of, self.cluster)
        document = envelope(schema, source, data, warnings, self.format, more)
        self.print_text(as_json(document))

    def rows(self, path: str, query: Query = _NOTHING, limit: int = 0) -> list[Row]:
        """Return the rows of a list (arguments: `pages`). Notes if there are more."""
        return [row for answer in self.pages(path, query, limit) for row in answer["data"]]

    def pages(self, path: str, query: Query = _NOTHING, limit: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the pages of a list. Notes if there are more.

        Args:
            path: the path of the list, such as `/alloc`.
            query: its parameters without `limit` and `after`; None is left out.
            limit: maximum number of rows on all pages together; 0: all.
        """
        left, after = limit, None
        while True:
            answer = self.get(
                path, {**query, "limit": min(left, PAGE) if limit else PAGE, "after": after}
            )
            # A statement has other fields beside its rows.
            data = answer["data"]
            rows = data if isinstance(data, list) else data["entries"]
            left, after = left - len(rows), answer.get("next")
            full = bool(limit) and left <= 0
            yield answer
            if full and after:
                more = f"There are more; this shows {limit}. To see them, add --limit {10 * limit}"
                self.later_notes += [] if more in self.later_notes else [more]
            if full or not after:
                return

    def one(self, path: str, field: str | None = None) -> Row:
        """Return a single object. Raises NotFound, naming `field` if it is given."""
        try:
            row: Row = self.get(path)["data"]
        except NotFound as missing:
            if missing.field != "X-Fairbank-As":  # then the user of --as is missing
                missing.field = field or missing.field
            raise
        return row

    @property
    def bank_time(self) -> Instant:
        """Return the time of the bank's last answer; before that, the time of this host."""
        return parse_instant(self.as_of) if self.as_of else self.now()

    def moment(self, typed: str | None, field: str, default: str | None = None) -> str | None:
        """Return a time that a user typed, as seconds since 1970 in text.

        Args:
            typed: what the user typed, as `parse_moment` takes it; None: the default.
            field: name of the option, for the error.
            default: a time in the same form; None: the result is None.
        """
        word = default if typed is None else typed
        if word is None:
            return None
        check_unit(word, field=field)
        return f"{parse_moment(word, self.now(), self.zone, field=field)}"

    def period(
        self, since: str | None = None, *, begins_later: bool = False
    ) -> dict[str, str | None]:
        """Return -S and -E for the bank. Raises InvalidInput.

        Args:
            since: default of -S.
            begins_later: accept a period in the future.
        """
        options = self.options
        begins, ends = (
            self.moment(options.starttime, "--starttime", since),
            self.moment(options.endtime, "--endtime"),
        )
        if begins is not None and ends is not None and int(ends) < int(begins):
            spans = f"from {self.format.moment(int(begins))} to {self.format.moment(int(ends))}"
            default = None if options.starttime else since
            why, remedy = (
                (f" (default: from {default} on)", "name its start with -S")
                if default
                else ("", "exchange -S and -E")
            )
            field = "--endtime" if default else "--starttime"
            raise InvalidInput(
                f"the period ends before it begins: {spans}{why}", field=field, remedy=remedy
            )
        if begins is not None and int(begins) > self.now() and not begins_later:
            raise InvalidInput(
                f"the period begins in the future: {self.format.moment(int(begins))}",
                field="--starttime",
                remedy="name an earlier start: -S now-7days",
            )
        return {"since": begins, "until": ends}

    def me(self) -> int:
        """Return the uid whose permissions count: ours, or that of the user acted as."""
        if (
            getattr(self.options, "acting_as", None) is None
            and self.settings.address.scheme == "unix"
        ):
            return os.geteuid()
        return int(self.one("/whoami")["uid"])
