"""`fairbank help WORD` where the word is no command: why the bank says no, what exit codes mean, what is read in the environment."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from fairbank.cli.exits import EXIT_CODES, REFUSED
from fairbank.cli.pager import pager_of, show_text
from fairbank.cli.shown import did_you_mean, terminal_width
from fairbank.core.errors import Malformed
from fairbank.report.cells import folded, plain
from fairbank.rest.statuses import STATUS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fairbank.cli.works import Explained, Works

TOPICS = ("reasons", "exit-codes", "environment")


def topic(words: str, works: Works, commands: Sequence[str]) -> int:
    """Show what `words` mean. Raises Malformed, with what may have been meant."""
    word = words.strip().lower().replace(" ", "-")
    match word:
        case "reasons":
            _show(_reasons(works.reasons()))
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
            there = {each.name.lower().replace("_", "-"): each for each in works.reasons()}
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
    from fairbank.cli.settings import ENVIRONMENT, KEYS, SITE_FILE

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
    """Folded to the terminal, and in pages where it is longer than that."""
    room = min(terminal_width(), 100)
    text = "\n".join(
        each for line in lines for part in line.split("\n") for each in folded(plain(part), room)
    )
    show_text(
        text, pager_of(Namespace(no_pager=False), os.environ) if sys.stdout.isatty() else None
    )
