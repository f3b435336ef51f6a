"""Pager for output that is longer than the screen."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

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
    import select

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
    with (
        suppress(BrokenPipeError, KeyboardInterrupt),
        cast("IO[bytes]", shown.stdin) as pages,
    ):  # Ctrl-C is the pager's business
        pages.write(text.encode(errors="backslashreplace"))
    while shown.poll() is None:
        with suppress(KeyboardInterrupt):
            shown.wait()
    return True
