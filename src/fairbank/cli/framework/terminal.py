"""Output of a command: the answer on stdout, notes on stderr."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from fairbank.cli.framework.host import Local
from fairbank.cli.framework.screen import pager_of, show_text, terminal_width
from fairbank.report.cells import folded, plain
from fairbank.report.columns import Look

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator


class Terminal:
    """Output of a command under its options."""

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self._held: list[str] | None = None

    @contextmanager
    def in_pages(self) -> Iterator[None]:
        """Collect the output inside, and show it with a pager if it is longer than the screen."""
        self._held = [] if self.for_people and pager_of(self.options, os.environ) else None
        try:
            yield
        finally:
            self._let_go()

    def _let_go(self) -> None:
        lines, self._held = self._held, None
        if lines:
            show_text("\n".join(lines), pager_of(self.options, os.environ))

    @property
    def for_people(self) -> bool:
        """Return whether stdout is a terminal."""
        return sys.stdout.isatty()

    @cached_property
    def format(self) -> Look:
        form = getattr(self.options, "form", None)
        return Look(
            units=getattr(self.options, "units", "h"),
            separators=self.for_people and form is None,
            zone=Local(),
            exact=form is not None,
        )

    @property
    def width(self) -> int:
        return terminal_width()

    @property
    def colours(self) -> bool:
        wanted = getattr(self.options, "color", "auto")
        return wanted == "always" or (
            wanted == "auto" and self.for_people and not os.environ.get("NO_COLOR")
        )

    def say(self, text: str = "") -> None:
        """Print lines of the answer. Control characters are escaped; a line end ends the line, so
        names that others chose go through `plain` first.
        """
        self.paint(*map(plain, text.split("\n")))

    def say_lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.say(line)

    def paint(self, *lines: str) -> None:
        """Print lines that are already escaped and may contain our colours."""
        for line in lines:
            if self._held is None:
                print(line)
            else:
                self._held.append(line)

    def note(self, *lines: str) -> None:
        """Print notes on stderr, folded to the terminal's width; -q suppresses them."""
        if not lines or getattr(self.options, "quiet", False):
            return
        self._let_go()
        sys.stdout.flush()
        for line in lines:
            print(*folded(plain(line), self.width), sep="\n", file=sys.stderr)

    def detail(self, line: str) -> None:
        """Print a note only with -v."""
        if getattr(self.options, "verbose", 0):
            self.note(line)

    def confirm(self, question: str) -> bool:
        """Ask on a terminal whether to continue, unless --yes. Return the answer."""
        if self.options.yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return True
        sys.stdout.flush()
        _discard_input()
        print(f"{plain(question)} [y/N] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")


def _discard_input() -> None:
    """Discard lines typed or pasted before the question: none of them can be its answer."""
    import select
    import termios

    for _ in range(40):  # bounded: at the end of the input, select reports it readable for ever
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
        # A terminal delivers a paste of more than 4 KiB in parts, with short pauses between them.
        if not select.select([sys.stdin], [], [], 0.05)[0]:
            return
