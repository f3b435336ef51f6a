"""Entry points `fairbank` and `sproject`, and the table of commands.

A command's module is imported only when the command is used, so that `fairbank --help` and the
everyday commands start fast.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from fairbank import __version__
from fairbank.cli.framework.error_exit import run_to_exit
from fairbank.cli.framework.screen import Shown, did_you_mean
from fairbank.core.errors import InvalidInput
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairbank.cli.framework.command import Command, Noun

ABOUT = "the allocation bank of a computing centre"
EXAMPLES = (
    "fairbank                                 my projects on one screen",
    "fairbank balance -A chem_qmc             what is left, and when it runs out",
    "fairbank quote job.sh                    what a job would cost, if it fits",
)


class CommandEntry(NamedTuple):
    """Command of `fairbank`; `location` is as for `load_command`."""

    name: str
    location: str
    about: str
    group: str


# By group: name, location and purpose.
_TABLE: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "Everybody": (
        ("balance", "commands.bank.balance", "show available credit, and when it runs out"),
        ("usage", "commands.bank.usage", "show usage by user, project, resource or time"),
        ("statement", "commands.bank.statement", "show the journal of an allocation"),
        ("jobs", "commands.bank.jobs", "list jobs with their costs, or refused jobs"),
        ("eff", "commands.bank.eff", "show the used part of a job's processors, and the waste"),
        ("report", "commands.report.report", "report the centre, draw credit and usage"),
        ("quote", "commands.bank.quote", "show the price of a job, and whether it fits"),
        ("whoami", "commands.bank.connection:WHOAMI", "show the authenticated user and its roles"),
        ("token", "commands.bank.token", "manage tokens for access over the network"),
        ("status", "commands.bank.connection:STATUS", "check that the bank answers"),
        ("completion", "completion", "complete commands, options and names in a shell"),
    ),
    "PIs and staff": (
        ("project", "commands.admin.project", "manage projects and their members"),
        ("alloc", "commands.admin.alloc", "create, change, freeze or cap allocations"),
        ("deposit", "commands.admin.credit:DEPOSIT", "put credit into an allocation"),
        ("withdraw", "commands.admin.credit:WITHDRAW", "take credit out of an allocation"),
        ("transfer", "commands.admin.credit:TRANSFER", "move credit between two allocations"),
        ("refund", "commands.admin.credit:REFUND", "refund the charge of a job"),
        ("undo", "commands.admin.credit:UNDO", "reverse an entry by a new one"),
        ("hold", "commands.admin.runs:HOLD", "hold the cost of a job by hand"),
        ("charge", "commands.admin.runs:CHARGE", "charge a job by hand"),
        ("release", "commands.admin.runs:RELEASE", "return the hold of a job by hand"),
        ("import", "commands.admin.import_csv", "import jobs of any scheduler from a file"),
        ("storage", "commands.admin.storage", "charge measured use of storage"),
    ),
    "On a Slurm host": (
        ("share", "commands.slurm.share", "show fair share as sshare does, with forecasts"),
        ("prio", "commands.slurm.prio", "show priorities of pending jobs, as sprio does"),
        ("queue", "commands.slurm.queue", "list my jobs, or all waiting ones"),
        ("why", "commands.slurm.why", "explain why a job waits, runs, ended or was refused"),
        ("reconcile", "commands.slurm.reconcile", "compare every run with Slurm's accounting"),
        ("shadow", "commands.slurm.shadow", "show what would be charged and refused"),
        ("slurm", "commands.slurm.slurm", "import from Slurm, write its policy and accounts"),
        ("agent", "commands.slurm.agent", "run the agent next to slurmctld; show its status"),
    ),
    "Jobs, on a queue of one's own or on Slurm": (
        ("cluster", "commands.cluster.cluster", "start and stop a queue on this host"),
        ("env", "commands.cluster.environment", "print what makes a shell use that queue"),
        ("run", "commands.queue.run", "run a command as a job"),
        ("log", "commands.queue.log", "print the output of a job"),
        ("wait", "commands.queue.wait", "wait until jobs have ended"),
        ("cancel", "commands.queue.cancel", "cancel jobs"),
        ("warn", "commands.queue.warn", "have a process signalled before the end of its job"),
    ),
    "On the bank's host": (
        ("init", "commands.admin.server:INIT", "create a bank, or migrate an older one"),
        ("serve", "commands.admin.server:SERVE", "run the bank"),
        ("audit", "commands.admin.audit", "recompute the ledger and compare every row"),
        ("backup", "commands.admin.backup", "create and check backups"),
        ("restore", "commands.admin.backup:RESTORE", "fill a store from a backup"),
        ("doctor", "commands.admin.doctor", "check this bank, or the set-up next to Slurm"),
        ("replay", "commands.planning.replay", "run a recorded workload through a bank"),
        ("simulate", "commands.planning.simulate", "simulate a workload under other policies"),
        ("whatif", "commands.planning.whatif", "simulate a workload with one thing changed"),
        ("demo", "commands.planning.demo", "run a month of jobs, then a first session"),
    ),
}

COMMANDS = tuple(CommandEntry(*row, group) for group, rows in _TABLE.items() for row in rows)

OVERVIEW = "commands.bank.overview"

SHORT_NAMES = {
    "sbalance": ("balance",),
    "susage": ("usage",),
    "sstatement": ("statement",),
    "squote": ("quote",),
    "swhy": ("why",),
    "sbank": (),
}
"""Names of links to `fairbank`, in the style of Slurm's commands: ln -s fairbank sbalance."""


def main() -> int:
    """Run `fairbank` with the arguments of the process, also under one of its short names."""
    name = os.path.basename(sys.argv[0])
    _complete_if_asked(name)
    code = run([*SHORT_NAMES.get(name, ()), *sys.argv[1:]])
    if "threading" not in sys.modules:
        # No thread is left to wait for. Python would need some milliseconds to take its modules
        # apart, a tenth of `fairbank run -- true`.
        with suppress(OSError):
            sys.stdout.flush()  # after Ctrl-C it may have lines
        os._exit(code)
    return code


def sproject() -> int:
    """Run `sproject`, HADM's command for the same bank, with the arguments of the process."""
    _complete_if_asked("sproject")
    from fairbank.cli.commands.bank import sproject as command

    return command.run(sys.argv[1:])


def _complete_if_asked(program: str) -> None:
    """Answer the shell and exit, if it has set _ARGCOMPLETE."""
    if "_ARGCOMPLETE" in os.environ:
        from fairbank.cli.completion import complete

        complete(program)


def run(argv: Sequence[str]) -> int:
    """Run one command line (without the program's name). Return the exit code; raise nothing."""
    return run_to_exit(lambda: _execute(list(argv)), argv)


def _execute(words: list[str]) -> int:
    words = _move_options_behind_command(words)
    if not words:
        return load_command(OVERVIEW).execute("fairbank", [])
    word, *rest = words
    if word in ("-V", "--version"):
        raise Shown(f"fairbank {__version__}\n")
    if word in ("-h", "--help", "help"):
        return _help(rest)
    if word.startswith("-"):
        return load_command(OVERVIEW).execute("fairbank", words)
    entry = find(word)
    return load_command(entry.location).execute(f"fairbank {entry.name}", rest)


def _help(rest: list[str]) -> int:
    if not rest or rest[0].startswith("-"):
        raise Shown(overview())
    word = rest[0]
    if word not in (entry.name for entry in COMMANDS):
        from fairbank.cli.commands.bank.help_topics import topic

        return topic(" ".join(rest), [entry.name for entry in COMMANDS])
    return _execute([*rest, "--help"])


def load_command(location: str) -> Command | Noun:
    """Import and return a command.

    Args:
        location: module below `fairbank.cli`; of a module with several commands also the variable:
            `commands.admin.credit:UNDO`.
    """
    module, _, variable = location.partition(":")
    command: Command | Noun = getattr(
        import_module(f"fairbank.cli.{module}"), variable or "COMMAND"
    )
    return command


def find(word: str) -> CommandEntry:
    """Return the command of this name. Raises InvalidInput with the nearest names."""
    for entry in COMMANDS:
        if entry.name == word:
            return entry
    meant = did_you_mean(word, [entry.name for entry in COMMANDS])
    raise InvalidInput(f"there is no command {plain(word[:40])!r}{meant}", remedy="fairbank --help")


_WITH_VALUE = frozenset({"--server", "--as", "--units", "--color", "-o", "--format", "--delimiter"})
_ALONE = frozenset(
    "--json --csv -P --parsable -n --noheader -l --long -v --verbose -q --quiet".split()
)


def _move_options_behind_command(words: list[str]) -> list[str]:
    """Read `fairbank --json balance` as `fairbank balance --json`."""
    early = count_early_options(words)
    late = words[early:]
    return late + words[:early] if not late or not late[0].startswith("-") else words


def count_early_options(words: Sequence[str]) -> int:
    """Return the number of words before the command: options that every command has."""
    early = 0
    while early < len(words) and (
        words[early] in _ALONE | _WITH_VALUE or words[early].partition("=")[0] in _WITH_VALUE
    ):
        early += 2 if words[early] in _WITH_VALUE else 1
    return early


def overview() -> str:
    """Return the help of `fairbank` itself."""
    lines = [f"fairbank: {ABOUT}", "", "Examples:", *(f"  {example}" for example in EXAMPLES), ""]
    for group in _TABLE:
        lines += [
            f"{group}:",
            *(f"  {entry.name:<12}{entry.about}" for entry in COMMANDS if entry.group == group),
            "",
        ]
    lines += [
        "fairbank COMMAND --help lists the options of a command, -V shows the version;",
        "fairbank help reasons, exit-codes or environment explains these.",
        "Address of the bank: --server, FAIRBANK_SERVER,",
        "~/.config/fairbank/client.toml, /etc/fairbank/client.toml, default socket.",
    ]
    return "\n".join(lines) + "\n"
