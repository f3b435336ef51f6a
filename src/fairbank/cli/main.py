"""`fairbank`: finds the command, loads only what it needs, and turns every ending into a sentence and an exit code."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from fairbank import __version__
from fairbank.cli.ending import ended
from fairbank.cli.shown import Shown, did_you_mean
from fairbank.core.errors import Malformed
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairbank.cli.command import Command, Noun
    from fairbank.cli.works import Works

ABOUT = "the allocation bank of a computing centre"
EXAMPLES = (
    "fairbank                                 my projects on one screen",
    "fairbank balance -A chem_qmc             what is left, and when it runs out",
    "fairbank quote job.sh                    what a job would cost, if it fits",
)


class Entry(NamedTuple):
    """A line of the table of commands."""

    name: str
    module: str
    about: str
    group: str


_EVERYBODY, _STAFF, _SLURM, _HOST = (
    "Everybody",
    "PIs and staff",
    "On a host of Slurm's",
    "On the bank's own host",
)
_GROUPS = (_EVERYBODY, _STAFF, _SLURM, _HOST)

COMMANDS = (
    Entry("balance", "balance", "what is left, and when it runs out", _EVERYBODY),
    Entry("usage", "usage", "who used what, when and where", _EVERYBODY),
    Entry("statement", "statement", "every entry of an allocation's journal", _EVERYBODY),
    Entry("jobs", "jobs", "jobs with what they cost; and those that were refused", _EVERYBODY),
    Entry("quote", "quote", "what a job would cost, and whether it fits", _EVERYBODY),
    Entry("whoami", "whoami", "who the bank takes you for", _EVERYBODY),
    Entry("token", "token", "tokens for signing in over the network", _EVERYBODY),
    Entry("status", "status", "whether the bank answers", _EVERYBODY),
    Entry("completion", "completion", "completion of words and names in your shell", _EVERYBODY),
    Entry("project", "project", "projects and their members", _STAFF),
    Entry("alloc", "alloc", "allocations: make, change, freeze, cap", _STAFF),
    Entry("deposit", "deposit", "put credit into an allocation", _STAFF),
    Entry("withdraw", "withdraw", "take credit out of an allocation", _STAFF),
    Entry("transfer", "transfer", "move credit between two allocations", _STAFF),
    Entry("refund", "refund", "give back what a job was charged", _STAFF),
    Entry("undo", "undo", "take back what an entry did, by another one", _STAFF),
    Entry("share", "share", "fair share: shares, usage, and what moves it", _SLURM),
    Entry("prio", "prio", "priorities of jobs that wait, and who is ahead", _SLURM),
    Entry("why", "why", "why a job waits, and when it is likely to start", _SLURM),
    Entry("reconcile", "reconcile", "compare every run with Slurm's accounting", _SLURM),
    Entry("shadow", "shadow", "what would be charged and refused", _SLURM),
    Entry("slurm", "slurm", "import from Slurm, write its policy and accounts", _SLURM),
    Entry("init", "init", "make a bank, or migrate one of an older Fairbank", _HOST),
    Entry("serve", "serve", "run the bank", _HOST),
    Entry("audit", "audit", "read the books again and compare every row", _HOST),
    Entry("backup", "backup", "make and check backups", _HOST),
    Entry("restore", "restore", "fill a store from a backup", _HOST),
    Entry("doctor", "doctor", "look for what is wrong with this bank, or next to Slurm", _HOST),
    Entry("replay", "replay", "run a recorded workload through a bank", _HOST),
    Entry("simulate", "simulate", "a recorded workload under other policies", _HOST),
    Entry("whatif", "whatif", "a workload, had something been otherwise", _HOST),
    Entry("report", "report", "figures of how jobs are ranked", _HOST),
    Entry("demo", "demo", "a month of jobs, then a newcomer's session", _HOST),
    Entry("agent", "agent", "run the agent beside slurmctld; its status", _SLURM),
)

SHORT_NAMES = {
    "sbalance": ("balance",),
    "susage": ("usage",),
    "sstatement": ("statement",),
    "squote": ("quote",),
    "swhy": ("why",),
    "sbank": (),
}
"""In the manner of Slurm's commands, for who makes links of these names: ln -s fairbank sbalance."""


def run(argv: Sequence[str], works: Works) -> int:
    """Carry out one command line (without the program's name). Returns the exit code; raises nothing."""
    return ended(lambda: _carry_out(list(argv), works))


def _carry_out(words: list[str], works: Works) -> int:
    words = _behind_the_command(words)
    if not words:
        return _command("overview").carry_out("fairbank", [], works)
    word, *rest = words
    if word in ("-V", "--version"):
        raise Shown(f"fairbank {__version__}\n")
    if word in ("-h", "--help", "help"):
        return _help(rest, works)
    if word.startswith("-"):
        return _command("overview").carry_out("fairbank", words, works)
    entry = find(word)
    return _command(entry.module).carry_out(f"fairbank {entry.name}", rest, works)


def _help(rest: list[str], works: Works) -> int:
    if not rest or rest[0].startswith("-"):
        raise Shown(overview())
    word = rest[0]
    if word not in (entry.name for entry in COMMANDS):
        from fairbank.cli.topics import topic

        return topic(" ".join(rest), works, [entry.name for entry in COMMANDS])
    return _carry_out([*rest, "--help"], works)


def _command(module: str) -> Command | Noun:
    found = import_module(f"fairbank.cli.{module}")
    made: Command | Noun = found.COMMAND
    return made


def find(word: str) -> Entry:
    """The command of this name. Raises Malformed, with what may have been meant."""
    for entry in COMMANDS:
        if entry.name == word:
            return entry
    meant = did_you_mean(word, [entry.name for entry in COMMANDS])
    raise Malformed(f"there is no command {plain(word[:40])!r}{meant}", remedy="fairbank --help")


_WITH_VALUE = frozenset({"--server", "--as", "--units", "--color", "-o", "--format", "--delimiter"})
_ALONE = frozenset(
    {
        "--json",
        "--yaml",
        "--csv",
        "-P",
        "--parsable",
        "-n",
        "--noheader",
        "-l",
        "--long",
        "-v",
        "--verbose",
        "-q",
        "--quiet",
    }
)


def _behind_the_command(words: list[str]) -> list[str]:
    """`fairbank --json balance` means `fairbank balance --json`."""
    early = 0
    while early < len(words) and (
        words[early] in _ALONE | _WITH_VALUE or words[early].partition("=")[0] in _WITH_VALUE
    ):
        early += 2 if words[early] in _WITH_VALUE else 1
    late = words[early:]
    return late + words[:early] if not late or not late[0].startswith("-") else words


def overview() -> str:
    """The help of `fairbank` itself."""
    lines = [f"fairbank: {ABOUT}", "", "Examples:", *(f"  {example}" for example in EXAMPLES), ""]
    for group in _GROUPS:
        lines += [
            f"{group}:",
            *(f"  {entry.name:<12}{entry.about}" for entry in COMMANDS if entry.group == group),
            "",
        ]
    lines += [
        "fairbank COMMAND --help tells the options of each, -V the version;",
        "fairbank help reasons, exit-codes or environment what these words say.",
        "The bank is found through --server, FAIRBANK_SERVER,",
        "~/.config/fairbank/client.toml, /etc/fairbank/client.toml, or its usual socket.",
    ]
    return "\n".join(lines) + "\n"
