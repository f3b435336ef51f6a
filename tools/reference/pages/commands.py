"""Reference page of the commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from fairbank.cli import main as program
from fairbank.cli.framework.command import Noun
from tools.reference.manual import PLANNED, column_sentences, planned_sentences

SHARED = ("Output:", "Safety:", "Bank and user:", "Common options:", f"{PLANNED}:")
"""Groups of options or columns that many commands have; the page prints each once."""
_OPTION = re.compile(r"^  (?:-\w, )?(--[a-z-]+)", re.MULTILINE)


def commands_page() -> str:
    """Return the page with the help of every command."""
    helps = dict(_helps())
    shared = {title: _largest(title, helps.values()) for title in SHARED}
    links = ", ".join(
        f"`{name}` for `{' '.join(('fairbank', *words))}`"
        for name, words in program.SHORT_NAMES.items()
    )
    lines = [
        *("# Commands", "", "```text", program.overview().rstrip(), "```", ""),
        "A link to `fairbank` under a short name is that command:",
        f"{links}.".replace(", ", ",\n"),
        *("For example: `ln -s fairbank sbalance`.", ""),
        *("## Options of many commands", ""),
        "The last line of a command names the groups below that it has.",
        "",
    ]
    for title, section in shared.items():
        lines += [f"### {title[:-1]}", "", "```text", section.partition("\n")[2], "```", ""]
    for name, sections in helps.items():
        own = [text for title, text in sections.items() if not _stands_in(shared, title, text)]
        lines += [f"## {name}", "", "```text", "\n\n".join(own), "```", ""]
        lines += [_also(shared, sections), ""]
    return "\n".join(lines).rstrip() + "\n"


def _helps() -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the name and the help of each command, by the first lines of its sections."""
    for entry in program.COMMANDS:
        entry_command = program.load_command(entry.location)
        verbs = (
            {
                f"fairbank {entry.name} {verb}": command
                for verb, command in entry_command.verbs.items()
            }
            if isinstance(entry_command, Noun)
            else {f"fairbank {entry.name}": entry_command}
        )
        for name, command in verbs.items():
            parser = command.parser(name)
            sections = parser.format_help().rstrip().split("\n\n")
            for title, columns in (
                ("Columns", column_sentences(name, command, parser)),
                (PLANNED, planned_sentences(command)),
            ):
                if columns:
                    lines = (f"  {head:<22} {text}" for head, text in columns.items())
                    sections.append("\n".join([f"{title}:", *lines]))
            yield name, {text.partition("\n")[0]: text for text in sections}


def _largest(title: str, helps: Iterable[Mapping[str, str]]) -> str:
    """Return the variant of a group with the most options."""
    variants = [help_[title] for help_ in helps if title in help_]
    return max(variants, key=lambda text: len(_OPTION.findall(text)))


def _stands_in(shared: Mapping[str, str], title: str, text: str) -> bool:
    """Return whether the shared group has every line of this one."""
    return title in shared and set(text.splitlines()) <= set(shared[title].splitlines())


def _also(shared: Mapping[str, str], sections: Mapping[str, str]) -> str:
    """Return the line with the shared groups of a command, and the options that it lacks."""
    groups = []
    for title, text in sections.items():
        if _stands_in(shared, title, text):
            options = _OPTION.findall(text)
            lacking = [name for name in _OPTION.findall(shared[title]) if name not in options]
            without = f" without {', '.join(f'`{name}`' for name in lacking)}" if lacking else ""
            anchor = re.sub(r"\W+", "-", title[:-1].lower())
            groups.append(f"[{title[:-1]}](#{anchor}){without}")
    return f"Also: {'; '.join(groups)}."
