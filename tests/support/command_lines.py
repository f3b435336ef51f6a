"""Command lines of `fairbank` on pages of the documentation."""

from __future__ import annotations

import re

from fairbank.cli.framework.command import Noun
from fairbank.cli.main import find, load_command

COMMAND_LINE = re.compile(
    r"^ *[#$] (?:sudo -u \S+ )?fairbank (.+)$|`fairbank ([^`]+)`", re.MULTILINE
)


def commands_in(page: str) -> list[str]:
    """Return the command lines of a page after the word `fairbank`, sorted, each once."""
    return sorted({typed or quoted for typed, quoted in COMMAND_LINE.findall(page)})


def parse_command(name: str, *words: str) -> None:
    """Parse a command line with the command's own parser. Raises InvalidInput."""
    command = load_command(find(name).location)
    prog, rest = f"fairbank {name}", list(words)
    if isinstance(command, Noun):
        prog, command, rest = command.choose(prog, rest)
    if rest:  # a bare name stands for the command itself
        command.parser(prog).read(rest)
