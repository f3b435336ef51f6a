"""`fairbank completion`: what bash, zsh or fish need to complete commands, verbs, options, and the names that the bank knows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fairbank.cli import names
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.options import add_nothing

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context


def _script(shell: str, context: Context, options: Namespace) -> int:
    from fairbank.cli.completion_scripts import bash, fish
    from fairbank.cli.completion_words import all_places, sproject_places

    script = fish if shell == "fish" else bash
    context.say(f"{script(all_places())}{script(sproject_places(), 'sproject')}".rstrip("\n"))
    return 0


def _shell(shell: str, about: str, examples: tuple[str, str, str]) -> Command:
    return Command(about, examples, add_nothing, partial(_script, shell), reads=False, asks=False)


COMMAND = Noun(
    "completion of commands, options and names for bash, zsh or fish",
    {
        "bash": _shell(
            "bash",
            "the completion for bash",
            (
                'eval "$(fairbank completion bash)"',
                "fairbank completion bash > ~/.local/share/bash-completion/completions/fairbank",
                "fairbank completion bash > /usr/share/bash-completion/completions/fairbank",
            ),
        ),
        "zsh": _shell(
            "zsh",
            "the completion for zsh",
            (
                'autoload -U +X bashcompinit && bashcompinit; eval "$(fairbank completion zsh)"',
                "fairbank completion zsh > ~/.fairbank.zsh",
                "source ~/.fairbank.zsh",
            ),
        ),
        "fish": _shell(
            "fish",
            "the completion for fish",
            (
                "fairbank completion fish | source",
                "fairbank completion fish > ~/.config/fish/completions/fairbank.fish",
                "fairbank completion fish > /usr/share/fish/vendor_completions.d/fairbank.fish",
            ),
        ),
        "names": Command(
            "names that the bank knows, a line each; nothing when it does not answer at once",
            (
                "fairbank completion names projects",
                "fairbank completion names allocations --about",
                "fairbank completion names users",
            ),
            names.add,
            names.run,
            reads=False,
        ),
    },
)
