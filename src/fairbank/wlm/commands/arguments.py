"""Command lines as getopt_long(3) reads them: options anywhere, letters in groups, short names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import RELEASE

_COMMA = re.compile(r",(?![^[]*\])")
_OFF = frozenset({"", "0", "f", "false", "n", "no"})


class CommandOption(NamedTuple):
    """Option of a command.

    letter    its short name, or empty
    value     name of its value; empty: it takes none. In brackets: only `--name=value` gives one.
    about     what it does, for --help
    variable  environment variable from which it is taken if it is not written
    """

    name: str
    letter: str = ""
    value: str = ""
    about: str = ""
    variable: str = ""


HELP = (
    CommandOption("help", about="show this help"),
    CommandOption("usage", about="show a short form of it"),
    CommandOption("version", "V", about="show the release"),
)
"""Options that every command has."""


class CommandLine(NamedTuple):
    """Options by their names, with the text of the last one, and the other words."""

    options: Mapping[str, str]
    words: Sequence[str]

    def items(self, name: str) -> list[str]:
        """Return the parts of the value of an option between commas; none without the option."""
        return [part for part in self.options.get(name, "").split(",") if part]

    def jobs(self) -> list[str]:
        """Return the job ids among the other words, which spaces or commas separate."""
        return [job for word in self.words for job in split_jobs(word)]


def read_command_line(
    name: str, usage: str, options: Sequence[CommandOption], words: Sequence[str]
) -> CommandLine | None:
    """Return the options and the other words; None if --help, --usage or --version was printed.

    `usage` has the operands, such as `[OPTIONS] [JOB...]`; `options` are without HELP. Raises
    InvalidInput if an option is unknown, or its value is missing.
    """
    every = (*options, *HELP)
    given = _from_variables(options)
    others: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            others += rest
            break
        if word.startswith("--"):
            long, has_value, text = word[2:].partition("=")
            option = _by_name(name, long, every)
            given[option.name] = _value(name, option, word, text if has_value else None, rest)
        elif word.startswith("-") and word != "-":
            letters = word[1:]
            while letters:
                option = _by_letter(name, letters[0], every)
                flag, letters = f"-{letters[0]}", letters[1:]
                takes_value = option.value and not option.value.startswith("[")
                text, letters = (letters, "") if takes_value else ("", letters)
                given[option.name] = _value(name, option, flag, text or None, rest)
        else:
            others.append(word)
    if "version" in given:
        print_version()
    elif "usage" in given:
        print(f"Usage: {name} {usage}")
    elif "help" in given:
        print_help(name, usage, every)
    else:
        return CommandLine(given, others)
    return None


def split_jobs(text: str) -> list[str]:
    """Return the job ids of `7,9_[1-3,5]`: commas in brackets belong to the id."""
    return [job for job in _COMMA.split(text) if job]


def _from_variables(options: Sequence[CommandOption]) -> dict[str, str]:
    """Return the values of the options that the environment has."""
    texts = [(option, os.environ.get(option.variable)) for option in options if option.variable]
    return {
        option.name: text if option.value else ""
        for option, text in texts
        if text is not None and (option.value or text.lower() not in _OFF)
    }


def print_version() -> None:
    """Print the release, as all commands do."""
    print(f"slurm-fairbank {RELEASE}")


def print_help(name: str, usage: str, options: Sequence[CommandOption]) -> None:
    """Print usage and options."""
    print(f"Usage: {name} {usage}\n")
    for option in options:
        start = f"  -{option.letter}, " if option.letter else "      "
        value = option.value and f"={option.value}"
        if option.value.startswith("["):
            value = f"[={option.value[1:]}"
        flag = f"{start}--{option.name}{value}"
        print(f"{flag:<34} {option.about}".rstrip())


def _by_name(command: str, name: str, options: Sequence[CommandOption]) -> CommandOption:
    matching = {option.name: option for option in options if option.name.startswith(name)}
    if name in matching:
        return matching[name]
    if len(matching) == 1:
        return matching.popitem()[1]
    if matching:
        names = " ".join(f"'--{other}'" for other in matching)
        raise _bad(command, f"option '--{name[:40]}' is ambiguous; possibilities: {names}")
    raise _bad(command, f"unrecognized option '--{name[:40]}'")


def _by_letter(command: str, letter: str, options: Sequence[CommandOption]) -> CommandOption:
    for option in options:
        if option.letter == letter:
            return option
    raise _bad(command, f"invalid option -- '{letter}'")


def _value(
    command: str, option: CommandOption, flag: str, text: str | None, rest: list[str]
) -> str:
    """Return the value of an option: that in its word, else the next word."""
    if not option.value and text is not None:
        raise _bad(command, f"option '--{option.name}' doesn't allow an argument")
    if text is None and option.value and not option.value.startswith("["):
        if not rest:
            is_letter = not flag.startswith("--")
            where = f"option requires an argument -- '{flag[1:]}'"
            raise _bad(command, where if is_letter else f"option '{flag}' requires an argument")
        return rest.pop(0)
    return text or ""


def _bad(command: str, message: str) -> InvalidInput:
    """Return the error of a command line, in the words of getopt_long(3)."""
    return InvalidInput(message, remedy=f'Try "{command} --help" for more information')
