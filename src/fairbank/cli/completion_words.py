"""What may stand where on a command line, as the commands' own parsers have it."""

from __future__ import annotations

from argparse import SUPPRESS
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from fairbank.cli.commands.bank.help_topics import TOPICS
from fairbank.cli.framework.command import Command, Noun

if TYPE_CHECKING:
    from argparse import Action
    from collections.abc import Mapping

# What a place wants: words apart by blanks, or one of these.
FREE, FILES = "-", "@files"
HELP = "help"

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
_FILES = frozenset({"FILE", "JOBFILE", "FOLDER", "TRACE"})


class Place(NamedTuple):
    """A command, or a beginning of one. `words` may come next when it is but a beginning; else there are `options`, those of them that
    take a value with what that is to be, what each place without an option is to be, and the options' `letters`. `usual` is the verb
    when none is said."""

    words: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    values: Mapping[str, str] = {}
    places: tuple[str, ...] = ()
    letters: Mapping[str, str] = {}
    usual: str | None = None


def all_places() -> dict[str, Place]:
    """By the words before: `` is the beginning, `alloc` a noun, `alloc list` a command."""
    from fairbank.cli.main import COMMANDS

    names = tuple(entry.name for entry in COMMANDS)
    there = {"": Place(words=(*names, HELP)), HELP: Place(words=(*names, *TOPICS))}
    for entry in COMMANDS:
        if find_spec(f"fairbank.cli.{entry.module}") is None:
            continue
        found: Command | Noun = import_module(f"fairbank.cli.{entry.module}").COMMAND
        if isinstance(found, Noun):
            there[entry.name] = Place(words=tuple(found.verbs), usual=found.default)
            there[f"{HELP} {entry.name}"] = Place(words=tuple(found.verbs))
            there |= {
                f"{entry.name} {verb}": _place(command) for verb, command in found.verbs.items()
            }
        else:
            there[entry.name] = _place(found)
    return there


def sproject_places() -> dict[str, Place]:
    """The same of `sproject`, whose verbs follow it straight away."""
    from fairbank.cli.commands.bank.sproject import COMMAND

    there = {"": Place(words=tuple(COMMAND.verbs), usual=COMMAND.default)}
    for verb, command in COMMAND.verbs.items():
        place = _place(command)
        there[verb] = place._replace(
            values={
                **place.values,
                **{flag: "@projects" for flag in ("-A", "--account") if flag in place.values},
            }
        )
    return there


def _place(command: Command) -> Place:
    actions = [each for each in command.parser("")._actions if each.help is not SUPPRESS]
    options = [each for each in actions if each.option_strings]
    return Place(
        options=tuple(
            flag for each in options for flag in each.option_strings if flag.startswith("--")
        ),
        values={
            flag: wanted(each)
            for each in options
            if each.nargs != 0
            for flag in each.option_strings
        },
        letters={
            each.option_strings[1]: each.option_strings[0][1:]
            for each in options
            if _has_letter(each)
        },
        places=tuple(wanted(each) for each in actions if not each.option_strings),
    )


def _has_letter(option: Action) -> bool:
    return (
        len(option.option_strings) > 1
        and len(option.option_strings[0]) == len("-A")
        and option.option_strings[1].startswith("--")
    )


def wanted(action: Action) -> str:
    """What its value is to be: words, FILES, `@projects`, `@projects,` where several may be listed, or FREE."""
    if action.choices is not None:
        return " ".join(map(str, action.choices))
    metavar = str(action.metavar or "")
    stem = metavar.split(",")[0]
    if stem in _FILES:
        return FILES
    kind = _BY_METAVAR.get(stem) or _BY_DEST.get(action.dest)
    return FREE if kind is None else f"@{kind}{',' if metavar.endswith(',...') else ''}"
