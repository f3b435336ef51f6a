"""Requested texts, suggestions, width of the terminal, and the pager.

Separate from the parser, so that the help of `fairbank` itself does not import argparse.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Mapping


class Shown(Exception):
    """Text that the user requested, such as the help: print it and stop."""


def terminal_width() -> int:
    """Return COLUMNS, or the terminal's width, or 80."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and 0 < int(columns) < 10_000:
        return int(columns)
    try:
        return os.get_terminal_size(1).columns or 80
    except (OSError, ValueError):
        return 80


def terminal_height() -> int | None:
    """Return the number of lines of the terminal; None in a pipe or file."""
    try:
        return os.get_terminal_size(1).lines or None
    except (OSError, ValueError):
        return None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean balance?` if a known word is near, else an empty string."""
    from difflib import get_close_matches  # 6 ms that only a mistake pays

    # Two letters swapped in a word of three leave a ratio of 2/3. In a longer word that ratio means
    # another word: `nonsense` and `none`, `storage` and `usage`.
    cutoff = 0.6 if len(word) <= 3 else 0.7
    near = get_close_matches(word[:64], list(known), n=2, cutoff=cutoff)
    return f"; did you mean {' or '.join(near)}?" if near else ""


LESS = {"LESS": "FRSX"}
"""Default options of less: no pager for one screen, colours, no wrapping, no clearing."""


def pager_of(options: Namespace, environ: Mapping[str, str]) -> str | None:
    """Return the pager to use; None for none."""
    wanted = environ.get("PAGER", "less").strip()
    if (
        getattr(options, "no_pager", True)
        or getattr(options, "watch", None)
        or environ.get("TERM") == "dumb"
    ):
        return None
    return wanted if wanted not in ("", "cat") else None


def show_text(text: str, pager: str | None) -> None:
    """Print the text, with the pager if it is longer than the screen and nothing is typed ahead."""
    if not (pager and _is_long(text) and not _has_input() and _turn_pages(f"{text}\n", pager)):
        print(text)


def _has_input() -> bool:
    """Return whether more lines are typed or pasted already: the pager would take them as keys."""
    import select  # help in a pipe does not need it

    try:
        return sys.stdin.isatty() and bool(select.select([sys.stdin], [], [], 0)[0])
    except (OSError, ValueError):
        return False


def _is_long(text: str) -> bool:
    """Return whether the text and the next prompt need more lines than the terminal has."""
    try:
        return text.count("\n") + 1 >= os.get_terminal_size(1).lines
    except OSError:
        return False


def _turn_pages(text: str, pager: str) -> bool:
    """Show the text with the pager. Return False if there is no such program."""
    import shlex
    import subprocess  # both together 20 ms, which only pages cost

    try:
        shown = subprocess.Popen(
            shlex.split(pager), stdin=subprocess.PIPE, env={**LESS, **os.environ}
        )
    except (OSError, ValueError):
        return False
    # Ctrl-C is the pager's business.
    with suppress(BrokenPipeError, KeyboardInterrupt), cast("IO[bytes]", shown.stdin) as pages:
        pages.write(text.encode(errors="backslashreplace"))
    while shown.poll() is None:
        with suppress(KeyboardInterrupt):
            shown.wait()
    return True
