"""`fairbank completion`: what bash, zsh or fish need to complete commands, verbs and options."""

from __future__ import annotations

from argparse import SUPPRESS
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from fairbank.cli.command import Command, Noun
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser

SHELLS = ("bash", "zsh", "fish")


def add(parser: Parser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="which shell")


def run(desk: Desk, options: Namespace) -> int:
    made = fish(all_words()) if options.shell == "fish" else bash(all_words())
    desk.say(made.rstrip("\n"))
    return 0


def all_words() -> dict[str, list[str]]:
    """After each word of a command line, what may come next: `` is the beginning, `alloc` its verbs, `alloc list` its options."""
    from fairbank.cli.main import COMMANDS

    words = {"": [entry.name for entry in COMMANDS]}
    for entry in COMMANDS:
        if find_spec(f"fairbank.cli.{entry.module}") is None:
            continue
        found: Command | Noun = import_module(f"fairbank.cli.{entry.module}").COMMAND
        if isinstance(found, Noun):
            words[entry.name] = list(found.verbs)
            words |= {f"{entry.name} {verb}": _options(command) for verb, command in found.verbs.items()}
        else:
            words[entry.name] = _options(found)
    return words


def _options(command: Command) -> list[str]:
    there = command.parser("")._option_string_actions.items()
    return [plain(word) for word, action in there if word.startswith("--") and action.help is not SUPPRESS]


def bash(words: dict[str, list[str]]) -> str:
    cases = "\n".join(f'    "{before}") echo "{" ".join(after)}" ;;' for before, after in words.items())
    return f"""\
# bash: fairbank completion bash > ~/.local/share/bash-completion/completions/fairbank
# zsh:  autoload -U +X bashcompinit && bashcompinit; eval "$(fairbank completion zsh)"
_fairbank_words() {{
  case "$1" in
{cases}
  esac
}}
_fairbank() {{
  local words=""
  if ((COMP_CWORD == 1)); then
    words="$(_fairbank_words "")"
  else
    ((COMP_CWORD > 2)) && words="$(_fairbank_words "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}")"
    [[ -z $words ]] && words="$(_fairbank_words "${{COMP_WORDS[1]}}")"
  fi
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _fairbank fairbank
"""


def fish(words: dict[str, list[str]]) -> str:
    lines = ["# fairbank completion fish > ~/.config/fish/completions/fairbank.fish", "complete -c fairbank -f"]
    for before, after in words.items():
        seen = [f"__fish_seen_subcommand_from {word}" for word in before.split()] or ["__fish_use_subcommand"]
        lines.append(f"complete -c fairbank -n '{'; and '.join(seen)}' -a '{' '.join(after)}'")
    return "\n".join(lines) + "\n"


COMMAND = Command(
    "what bash, zsh or fish need to complete commands, verbs and options",
    (
        'eval "$(fairbank completion bash)"',
        "fairbank completion fish > ~/.config/fish/completions/fairbank.fish",
        "fairbank completion zsh",
    ),
    add,
    run,
    reads=False,
    asks=False,
)
