"""Progress bar on stderr, with rate and time left; plain lines on request."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from fairbank.cli.framework.options import add_option
from fairbank.cli.framework.screen import terminal_width
from fairbank.report.cells import cut

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.parser import Parser

BAR = 30
EVERY_SECONDS = 0.1
CLEAR_LINE = "\r\x1b[K"


def add_progress(parser: Parser) -> None:
    about = "a bar on a terminal; plain: a line for each tenth"
    add_option(parser, "--progress", about, choices=("auto", "plain", "none"), default="auto")


class ProgressBar:
    """Progress of one task: call it with amount and total. Leaving its context removes its line."""

    def __init__(self, what: str, options: Namespace) -> None:
        self._what = what
        self._plain = options.progress == "plain" and not options.quiet
        self._bar = options.progress == "auto" and not options.quiet and sys.stderr.isatty()
        self._began = self._last = time.monotonic()
        self._tenth = 0
        self._awaited = ""

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._draw("")

    def _draw(self, line: str) -> None:
        # A line that wraps could not be cleared: CLEAR_LINE clears only its last row.
        text = cut(line, terminal_width() - 1)
        print(f"{CLEAR_LINE}{text}", end="", file=sys.stderr, flush=True)

    def show(self, what: str) -> None:
        """Show the current step, whose progress is unknown."""
        if self._bar:
            self._draw(f"{self._what}: {what}")
        elif self._plain:
            print(f"{self._what}: {what}", file=sys.stderr, flush=True)

    def wait(self, what: str) -> None:
        """Show what the command waits for, and on a terminal for how long. Call it repeatedly."""
        now = time.monotonic()
        if self._awaited != what:
            self._awaited, self._began = what, now
            self.show(what)
        elif self._bar and now - self._last >= EVERY_SECONDS:
            self._last = now
            self.show(f"{what} ({_clock(now - self._began)})")

    def __call__(self, done: int, of: int) -> None:
        now = time.monotonic()
        if self._awaited:  # the rate is of what is counted
            self._awaited, self._began = "", now
        if self._bar and (now - self._last >= EVERY_SECONDS or done >= of):
            self._last = now
            self._draw(bar(self._what, done, of, now - self._began))
        elif self._plain and of and done * 10 // of > self._tenth:
            self._tenth = done * 10 // of
            print(f"{self._what} {done * 100 // of}%", file=sys.stderr, flush=True)


class Stages:
    """Progress of consecutive tasks, a bar for each."""

    def __init__(self, options: Namespace) -> None:
        self._options = options
        self._stage: tuple[str, ProgressBar] | None = None

    def __enter__(self) -> Stages:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stage is not None:
            self._stage[1].__exit__()

    def __call__(self, what: str, done: int, of: int) -> None:
        if self._stage is None or self._stage[0] != what:
            self.__exit__()
            self._stage = (what, ProgressBar(what, self._options))
        self._stage[1](done, of)


def bar(what: str, done: int, of: int, seconds: float) -> str:
    """Return `audit [##########--------------------]  33%  212k/s  ETA 0:09`.

    Args:
        what: name of the stage.
        done: units of work that are done.
        of: all units, or an estimate; 0: unknown, shown as 0 %.
        seconds: time since the stage began, for the speed.
    """
    part = min(1.0, done / of) if of else 0.0
    filled = int(part * BAR)
    rate = done / seconds if seconds > 0 else 0.0
    speed = f"{rate / 1000:.0f}k" if rate >= 10_000 else f"{rate:.0f}"
    left = f"  ETA {_clock((of - done) / rate)}" if rate and 0 < done < of else ""
    return f"{what} [{'#' * filled}{'-' * (BAR - filled)}] {int(part * 100):3}%  {speed}/s{left}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"
