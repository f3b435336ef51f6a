"""Description of a command: purpose, examples, options and function."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairbank.cli.framework.exit_codes import NOT_DONE
from fairbank.cli.framework.options import add_common, add_output, add_server
from fairbank.cli.framework.parser import Parser
from fairbank.cli.framework.screen import Shown, did_you_mean
from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.report.columns import Column

    Columns = Sequence[Column]


class Command(NamedTuple):
    """One command.

    `examples` are command lines; {} stands for the name of the command.
    `reads`: it prints a list in any of the output formats. `asks`: it sends requests to the bank.
    `watch`: it can repeat its output (--watch). `columns`: of its table, for --helpformat.
    """

    about: str
    examples: tuple[str, ...]
    add: Callable[[Parser], None]
    run: Callable[[Context, Namespace], int]
    reads: bool = True
    asks: bool = True
    watch: bool = False
    columns: Columns | Callable[[Namespace], Columns] = ()

    def parser(self, prog: str) -> Parser:
        """Return the argument parser of this command."""
        parser = Parser(prog, self.about, [line.replace("{}", prog) for line in self.examples])
        self.add(parser)
        if self.reads:
            add_output(parser, watch=self.watch)
        if self.asks:
            add_server(parser)
        add_common(parser)
        return parser

    def execute(self, prog: str, words: list[str]) -> int:
        """Run the command. An error names the option as typed, not the field of the request."""
        parser = self.parser(prog)
        options = parser.read(words)
        from fairbank.cli.framework.context import Context  # 11 ms that help does not need

        context = Context(options, prog, words)
        try:
            return self._run(context, options)
        except FairbankError as error:
            error.bank = error.bank or context.bank
            if isinstance(error, InvalidInput) and error.is_answer:
                error.remedy = parser.other_value(error.field or "") or error.remedy
            error.field = error.field and parser.typed(error.field, words)
            raise

    def _run(self, context: Context, options: Namespace) -> int:
        """Run the command, with --helpformat and --watch if it has them."""
        from fairbank.cli.framework.output import run_watched, shown_columns

        columns = self.columns(options) if callable(self.columns) else self.columns
        if (self.reads or columns) and shown_columns(context, columns):
            return 0
        if self.watch:
            code = run_watched(context, lambda: self.run(context, options))
        else:
            code = self.run(context, options)
        if code != NOT_DONE:
            context.name_bank()
        return code


def host_command(
    about: str,
    examples: tuple[str, ...],
    add: Callable[[Parser], None],
    run: Callable[[Context, Namespace], int],
) -> Command:
    """Return a command that neither prints a list nor sends requests to the bank.

    Args:
        about: what it does, for the help.
        examples: command lines for the end of the help.
        add: adds its options and arguments to the parser.
        run: runs it and returns the exit code.
    """
    return Command(about, examples, add, run, reads=False, asks=False)


class Noun(NamedTuple):
    """Command with verbs, such as `alloc`; `default` is the verb when none is given."""

    about: str
    verbs: Mapping[str, Command]
    default: str | None = None

    def choose(self, prog: str, words: list[str]) -> tuple[str, Command, list[str]]:
        """Return name, command and remaining words. Raises InvalidInput, Shown with the help."""
        word = words[0] if words else ""
        if word in self.verbs:
            return f"{prog} {word}", self.verbs[word], words[1:]
        if word in ("-h", "--help", "help"):
            raise Shown(self.help(prog))
        if self.default and (not word or word.startswith("-")):
            return f"{prog} {self.default}", self.verbs[self.default], words
        there = f"{prog} {' | '.join(self.verbs)}"
        if not word or word.startswith("-"):
            raise InvalidInput(f"{prog} needs a verb", remedy=there)
        raise InvalidInput(
            f"{prog} has no verb {plain(word[:40])!r}{did_you_mean(word, self.verbs)}", remedy=there
        )

    def execute(self, prog: str, words: list[str]) -> int:
        """Run the verb."""
        prog, command, words = self.choose(prog, words)
        return command.execute(prog, words)

    def help(self, prog: str) -> str:
        """Return the help: one line per verb."""
        lines = [f"{prog}: {self.about}", "", "Verbs:"]
        lines += [f"  {name:<14}{command.about}" for name, command in self.verbs.items()]
        return "\n".join([*lines, "", f"{prog} VERB --help tells the options of each."]) + "\n"
