"""Help on topics: `fairbank help reasons`, `exit-codes`, `environment`, or one reason."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from fairbank.cli.framework.exit_codes import EXIT_CODES, REFUSED
from fairbank.cli.framework.pager import pager_of, show_text
from fairbank.cli.framework.shown import did_you_mean, terminal_width
from fairbank.core.errors import Malformed
from fairbank.report.cells import folded, plain
from fairbank.rest.statuses import STATUS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fairbank.bank.explaining import Explained

TOPICS = ("reasons", "exit-codes", "environment")


def topic(words: str, commands: Sequence[str]) -> int:
    """Print the help on a topic. Raises Malformed with the nearest topics."""
    from fairbank.bank.explaining import explained

    word = words.strip().lower().replace(" ", "-")
    match word:
        case "reasons":
            _show(_reasons(explained()))
        case "exit-codes":
            _show(
                [
                    "Exit codes of all commands:",
                    "",
                    *_pairs((str(code), about) for code, about in EXIT_CODES.items()),
                ]
            )
        case "environment":
            _show(_environment())
        case _:
            there = {each.name.lower().replace("_", "-"): each for each in explained()}
            if word.replace("_", "-") not in there:
                meant = did_you_mean(word, [*commands, *TOPICS, *there])
                raise Malformed(
                    f"there is no help on {plain(words[:40])!r}{meant}",
                    remedy=f"fairbank --help, or fairbank help {TOPICS[0]}",
                )
            _show(_reason(there[word.replace("_", "-")]))
    return 0


def _reasons(reasons: Iterable[Explained]) -> Iterator[str]:
    yield "Why the bank says no: each reason, what it means, and what to do."
    yield "Capitals in a remedy stand for what your case has of its own; the refusal"
    yield "itself names the figures: fairbank jobs --refused"
    for each in reasons:
        yield ""
        yield from _reason(each)


def _reason(no: Explained) -> list[str]:
    told = f"exit code {REFUSED[no.kind]}, HTTP status {STATUS[no.kind]}"
    return [f"{no.name}: {no.meaning}", f"  {no.why}", f"  try: {no.remedy}", f"  {told}"]


def _environment() -> list[str]:
    from fairbank.cli.framework.client_settings import ENVIRONMENT, KEYS, SITE_FILE

    own = [(f"FAIRBANK_{key.upper()}", about) for key, about in KEYS.items()]
    lines = [
        "What the commands read in the environment. Options count before it, then it",
        'does, then files with lines KEY = "TEXT":',
    ]
    lines += [
        "  ~/.config/fairbank/client.toml",
        f"  {SITE_FILE}",
        f"  keys: {', '.join(KEYS)}",
        "",
    ]
    return [*lines, *_pairs([*own, *ENVIRONMENT.items()])]


def _pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, about in pairs:
        yield f"{name:<4} {about}" if len(name) <= 4 else f"{name}\n    {about}"


def _show(lines: Iterable[str]) -> None:
    """Print the lines, folded to the terminal and with a pager if they are long."""
    room = min(terminal_width(), 100)
    text = "\n".join(
        each for line in lines for part in line.split("\n") for each in folded(plain(part), room)
    )
    show_text(
        text, pager_of(Namespace(no_pager=False), os.environ) if sys.stdout.isatty() else None
    )
