"""Help on topics: `fairbank help reasons`, `exit-codes`, `environment`, or one reason."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from fairbank.cli.framework.exit_codes import EXIT_CODES
from fairbank.cli.framework.screen import did_you_mean, pager_of, show_text, terminal_width
from fairbank.core.errors import InvalidInput
from fairbank.report.cells import folded, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fairbank.bank.refusals import Reason

TOPICS = ("reasons", "exit-codes", "environment")
_OF_ONE_JOB = "as squeue prints it; of one job: fairbank why JOBID"


def topic(words: str, commands: Sequence[str]) -> int:
    """Print the help on a topic. Raises InvalidInput with the nearest topics."""
    from fairbank.bank.refusals import Reason

    word = words.strip().lower().replace(" ", "-")
    match word:
        case "reasons":
            _show(_reasons(Reason))
        case "exit-codes":
            pairs = _pairs((str(code), about) for code, about in EXIT_CODES.items())
            _show(["Exit codes of all commands:", "", *pairs])
        case "environment":
            _show(_environment())
        case _:
            _show(_one_reason(words.strip(), commands))
    return 0


def _one_reason(words: str, commands: Sequence[str]) -> list[str]:
    """Return the help on one reason of a refusal, or as squeue prints it. Raises InvalidInput."""
    from fairbank.agent.outage_policy import AGENT_REASONS
    from fairbank.agent.reports.report import BANK_REASONS
    from fairbank.bank.refusals import Reason
    from fairbank.scheduling.reason import EARLIER_NAMES, NAMES, advise_on_reason, explain_reason
    from fairbank.slurm.parsers.words import reason as read_reason

    word = _spelling(read_reason(words.removeprefix("(").removesuffix(")")))
    of_bank = {_spelling(reason.name): reason for reason in Reason}
    held_by_bank = {_spelling(name): name for name in BANK_REASONS}
    of_agent = {_spelling(name): name for name in AGENT_REASONS}
    of_slurm = {name.lower(): name for name in (*NAMES.values(), *EARLIER_NAMES)}
    if word in of_bank:
        return _reason(of_bank[word])
    if name := held_by_bank.get(word):
        return [*_reason(Reason[BANK_REASONS[name]]), f"  squeue prints it as {name}"]
    if name := of_agent.get(word):
        return [f"{name}: {AGENT_REASONS[name]}", f"  a reason of Fairbank, {_OF_ONE_JOB}"]
    if name := of_slurm.get(word):
        return [
            f"{name}: {explain_reason(name)}",
            f"  try: {advise_on_reason(name)}",
            f"  a reason of Slurm, {_OF_ONE_JOB}",
        ]
    in_squeue = [*held_by_bank, *of_agent, *of_slurm]
    meant = did_you_mean(word, [*commands, *TOPICS, *of_bank]) or did_you_mean(word, in_squeue)
    raise InvalidInput(
        f"there is no help on {plain(words[:40])!r}{meant}",
        remedy=f"fairbank --help lists the commands; fairbank help {', '.join(TOPICS)}",
    )


def _spelling(reason: str) -> str:
    return reason.lower().replace("_", "-")


def _reasons(reasons: Iterable[Reason]) -> Iterator[str]:
    yield "Reasons of refusals: what each means, and what to do."
    yield "Capitals in a remedy stand for the figures of your own case; the refusal"
    yield "itself names them: fairbank jobs --refused"
    for reason in reasons:
        yield ""
        yield from _reason(reason)


def _reason(reason: Reason) -> list[str]:
    info, kind = reason.info, reason.kind
    return [
        f"{reason.name}: {info.message}",
        f"  {info.explanation}",
        f"  try: {info.general_remedy}",
        f"  exit code {kind.exit_code}, HTTP status {kind.status}",
    ]


def _environment() -> list[str]:
    from fairbank.cli.framework.client_settings import ENVIRONMENT
    from fairbank.client_file import KEYS, SITE_FILE

    own = [(f"FAIRBANK_{key.upper()}", about) for key, about in KEYS.items()]
    return [
        "What the commands read in the environment. Options count before it, then it",
        'does, then files with lines KEY = "TEXT":',
        "  ~/.config/fairbank/client.toml",
        f"  {SITE_FILE}",
        f"  keys: {', '.join(KEYS)}",
        "",
        *_pairs([*own, *ENVIRONMENT.items()]),
    ]


def _pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, about in pairs:
        yield f"{name:<4} {about}" if len(name) <= 4 else f"{name}\n    {about}"


def _show(lines: Iterable[str]) -> None:
    """Print the lines, folded to the terminal and with a pager if they are long."""
    columns = min(terminal_width(), 100)
    text = "\n".join(
        piece
        for line in lines
        for part in line.split("\n")
        for piece in folded(plain(part), columns)
    )
    show_text(
        text, pager_of(Namespace(no_pager=False), os.environ) if sys.stdout.isatty() else None
    )
