"""`fairbank help WORD` where the word is no command: why the bank says no, what exit codes mean, what is read in the environment."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from fairbank.cli.exits import EXIT_CODES
from fairbank.cli.pager import pager_of, show_text
from fairbank.cli.shown import did_you_mean, terminal_width
from fairbank.core.errors import InvalidInput
from fairbank.report.cells import folded, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fairbank.bank.refusals import Reason
    from fairbank.cli.works import Works

TOPICS = ("reasons", "exit-codes", "environment")


def topic(words: str, works: Works, commands: Sequence[str]) -> int:
    """Show what `words` mean. Raises InvalidInput, with what may have been meant."""
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
                raise InvalidInput(
                    f"there is no help on {plain(words[:40])!r}{meant}",
                    remedy=f"fairbank --help, or fairbank help {TOPICS[0]}",
                )
            _show(_reason(there[word.replace("_", "-")]))
    return 0


def _reasons(reasons: Iterable[Reason]) -> Iterator[str]:
    yield "Reasons of refusals: what each means, and what to do."
    yield "Capitals in a remedy stand for the figures of your own case; the refusal"
    yield "itself names them: fairbank jobs --refused"
    for each in reasons:
        yield ""
        yield from _reason(each)


def _reason(reason: Reason) -> list[str]:
    info, kind = reason.info, reason.kind
    return [
        f"{reason.name}: {info.message}",
        f"  {info.explanation}",
        f"  try: {info.general_remedy}",
        f"  exit code {kind.exit_code}, HTTP status {kind.status}",
    ]


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
