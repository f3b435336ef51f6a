"""Command `completion`, and completion of command lines by argcomplete.

The shell runs `fairbank` itself with _ARGCOMPLETE set (docs/decisions/0035-argcomplete.md). Only
the command on the line gets its options: the modules of the others are not imported.
"""

from __future__ import annotations

import os
from argparse import SUPPRESS, ArgumentParser
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from fairbank.cli import main
from fairbank.cli.framework.command import Command, Noun, host_command
from fairbank.cli.framework.options import add_nothing, add_server
from fairbank.cli.framework.parser import Parser

if TYPE_CHECKING:
    from argparse import Action, Namespace
    from collections.abc import Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.names import Name

_BY_METAVAR = {
    "PROJECT": "projects",
    "USER": "users",
    "ALLOC": "allocations",
    "FROM": "allocations",
    "TO": "allocations",
}
_BY_DEST = {
    "partition": "partitions",
    "cluster": "clusters",
    "clusters": "clusters",
    "resource": "resources",
}
_FILES = frozenset({"FILE", "JOBFILE", "DIRECTORY", "TRACE"})


class NameCompleter(NamedTuple):
    """Completer for names that the bank knows. `several`: the value is a list with commas."""

    kind: str
    several: bool
    words: Sequence[str]

    def __call__(self, *, prefix: str, **_: object) -> Mapping[str, str]:
        """Return the words that may stand here, each with its description."""
        lead = prefix[: prefix.rfind(",") + 1] if self.several else ""
        return {f"{lead}{name.word}": name.about for name in self._names()}

    def _names(self) -> list[Name]:
        from fairbank.cli.framework.client_settings import read_client_settings
        from fairbank.cli.names import find_names
        from fairbank.core.errors import FairbankError

        parser = Parser("", "")
        add_server(parser)
        try:
            options, _ = parser.parse_known_args(self.words)
            settings = read_client_settings({"server": options.server}, os.environ)
            return find_names(self.kind, settings, options.acting_as)
        except FairbankError:  # the command itself will report the wrong setting
            return []


def complete(program: str) -> NoReturn:
    """Print the completions of the command line in the environment, and exit."""
    from argcomplete import autocomplete
    from argcomplete.completers import SuppressCompleter
    from argcomplete.lexers import split_line

    line = os.environ["COMP_LINE"]
    _, prefix, _, words, _ = split_line(line, int(os.environ["COMP_POINT"]))
    parser = build_parser(program, [*words[1:], prefix])
    autocomplete(parser, always_complete_options=False, default_completer=SuppressCompleter())
    raise AssertionError("autocomplete exits when _ARGCOMPLETE is set")


def build_parser(program: str, words: Sequence[str]) -> ArgumentParser:
    """Return a parser for the words after the program; the last one is being completed.

    Only the command that the words name has its options.
    """
    if program == "sproject":
        return _command_parser("commands.bank.sproject", words)
    if short := main.SHORT_NAMES.get(program):
        return _command_parser(main.find(short[0]).location, words)
    *before, last = words
    name, *rest = [*before[main.count_early_options(before) :], last]
    root = _command_parser(main.OVERVIEW, words)
    if rest:
        for action in root._actions:
            action.help = SUPPRESS  # options of `fairbank` alone: parsed, but not offered
    if rest and name not in ("help", *(entry.name for entry in main.COMMANDS)):
        return root
    commands = root.add_subparsers(parser_class=ArgumentParser)
    for entry in main.COMMANDS:
        parents = [_command_parser(entry.location, rest)] if rest and entry.name == name else []
        commands.add_parser(entry.name, help=entry.about, add_help=False, parents=parents)
    topics = commands.add_parser("help", help="help on a command or a topic", add_help=False)
    _add_topics(topics, rest)
    return root


def _command_parser(location: str, words: Sequence[str]) -> ArgumentParser:
    """Return the parser of a command, with completers. The words follow its name."""
    command = main.load_command(location)
    if isinstance(command, Command):
        return _with_completers(command.parser(""), words)
    # Options may follow the noun itself: then the default verb is meant.
    if command.default is not None and words[0].startswith("-"):
        return _with_completers(command.verbs[command.default].parser(""), words)
    parser = ArgumentParser(add_help=False)
    verbs = parser.add_subparsers()
    for name, verb in command.verbs.items():
        parents = [_with_completers(verb.parser(""), words)] if name == words[0] else []
        verbs.add_parser(name, help=verb.about, add_help=False, parents=parents)
    return parser


def _add_topics(parser: ArgumentParser, words: Sequence[str]) -> None:
    from fairbank.cli.commands.bank.help_topics import TOPICS

    topics = parser.add_subparsers()
    for topic in TOPICS:
        topics.add_parser(topic, add_help=False)
    for entry in main.COMMANDS:
        topic_parser = topics.add_parser(entry.name, help=entry.about, add_help=False)
        if len(words) > 1 and words[0] == entry.name:
            command = main.load_command(entry.location)
            if isinstance(command, Noun):
                verbs = topic_parser.add_subparsers()
                for name, verb in command.verbs.items():
                    verbs.add_parser(name, help=verb.about, add_help=False)


def _with_completers(parser: ArgumentParser, words: Sequence[str]) -> ArgumentParser:
    from argcomplete.completers import FilesCompleter

    by_project = any(word.startswith(("-A", "--account", "--to")) for word in words)
    for action in parser._actions:
        stem, *more = str(action.metavar or "").split(",")
        kind = _BY_METAVAR.get(stem) or _BY_DEST.get(action.dest)
        if action.choices is not None:
            continue  # argcomplete offers them itself
        if kind == "allocations" and action.nargs == "?":
            if by_project:
                continue
            action.nargs = None  # else the number could be the argument after it
        if stem in _FILES:
            _set_completer(action, FilesCompleter())
        elif kind is not None:
            _set_completer(action, NameCompleter(kind, several=more == ["..."], words=words))
    return parser


def _set_completer(action: Action, completer: object) -> None:
    """Set the attribute in which argcomplete looks for the completer."""
    vars(action)["completer"] = completer


def _print_script(shell: str, context: Context, options: Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    del options
    programs = ["fairbank", "sproject", *main.SHORT_NAMES]
    context.print_text(shellcode(programs, use_defaults=False, shell=shell).rstrip("\n"))
    return 0


_EXAMPLES = {
    "bash": (
        'eval "$({})"',
        "{} > ~/.local/share/bash-completion/completions/fairbank",
        "{} > /usr/share/bash-completion/completions/fairbank",
    ),
    "zsh": (
        'autoload -U compinit && compinit; eval "$({})"',
        "{} > ~/.fairbank.zsh",
        "source ~/.fairbank.zsh",
    ),
    "fish": (
        "{} | source",
        "{} > ~/.config/fish/completions/fairbank.fish",
        "{} > /usr/share/fish/vendor_completions.d/fairbank.fish",
    ),
    "tcsh": ("eval `{}`", "{} > ~/.fairbank.tcsh", "source ~/.fairbank.tcsh"),
}

COMMAND = Noun(
    "completion of commands, options and names for bash, zsh, fish or tcsh",
    {
        shell: host_command(
            f"the completion script for {shell}",
            examples,
            add_nothing,
            partial(_print_script, shell),
        )
        for shell, examples in _EXAMPLES.items()
    },
)
