"""Reference page of the commands."""

from __future__ import annotations

from importlib import import_module

from fairbank.cli import main as front
from fairbank.cli.framework.command import Noun


def commands_page() -> str:
    """Return the page with the help of every command."""
    lines = ["# Commands", "", "```text", front.overview().rstrip(), "```", ""]
    links = ", ".join(
        f"`{name}` for `{' '.join(('fairbank', *words))}`"
        for name, words in front.SHORT_NAMES.items()
    )
    lines += [
        (
            f"A link to `fairbank` under a short name is that command: {links}. For example "
            "`ln -s fairbank sbalance`."
        ),
        "",
    ]
    for entry in front.COMMANDS:
        found = import_module(f"fairbank.cli.{entry.module}").COMMAND
        verbs = (
            {f"{entry.name} {verb}": each for verb, each in found.verbs.items()}
            if isinstance(found, Noun)
            else {entry.name: found}
        )
        for name, command in verbs.items():
            lines += [
                f"## fairbank {name}",
                "",
                "```text",
                command.parser(f"fairbank {name}").format_help().rstrip(),
                "```",
                "",
            ]
    return "\n".join(lines).rstrip() + "\n"
