"""Command lines as getopt_long(3) reads them: options anywhere, letters in groups, short names."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import RELEASE
from fairbank.core.submission.command_words import TakesValue, read_words, unknown_option

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
    flags = {f"--{option.name}": option for option in reversed(every)}
    flags |= {f"-{option.letter}": option for option in reversed(every) if option.letter}
    given, others = _from_variables(options), list[str]()
    try:
        for word in read_words(iter(words), flags, _takes):
            if isinstance(word, str):
                others.append(word)
                continue
            option, flag, text = word
            if option is None:
                raise InvalidInput(unknown_option(flag, flags))
            if text is not None and not option.value:
                raise InvalidInput(f"option '{flag}' doesn't allow an argument")
            given[option.name] = text or ""
    except InvalidInput as error:
        remedy = f'Try "{name} --help" for more information'
        raise InvalidInput(error.message, remedy=remedy) from error
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


def _takes(option: CommandOption) -> TakesValue:
    if not option.value:
        return "no"
    return "in its word" if option.value.startswith("[") else "yes"
