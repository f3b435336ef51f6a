"""What a command is: what it is for, examples, options, and what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairbank.cli.options import add_common, add_output, add_server
from fairbank.cli.parser import Parser
from fairbank.cli.shown import Shown, did_you_mean
from fairbank.core.errors import Malformed, Trouble
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping

    from fairbank.cli.desk import Desk
    from fairbank.cli.works import Works


class Command(NamedTuple):
    """One command. `reads`: it shows something, in the form that its reader wants. `asks`: it speaks to the bank over REST."""

    about: str
    examples: tuple[str, ...]
    add: Callable[[Parser], None]
    run: Callable[[Desk, Namespace], int]
    reads: bool = True
    asks: bool = True
    watch: bool = False

    def parser(self, prog: str) -> Parser:
        """The reader of this command's words."""
        parser = Parser(prog, self.about, self.examples)
        self.add(parser)
        if self.reads:
            add_output(parser, watch=self.watch)
        if self.asks:
            add_server(parser)
        add_common(parser)
        return parser

    def carry_out(self, prog: str, words: list[str], works: Works) -> int:
        """Read the words and do what they say. Whatever goes wrong is told of the words as they were typed."""
        parser = self.parser(prog)
        options = parser.read(words)
        from fairbank.cli.desk import Desk  # 11 ms that help does not need

        try:
            return self.run(Desk(works, options, prog), options)
        except Trouble as trouble:
            trouble.field = trouble.field and parser.typed(trouble.field, words)
            raise


class Noun(NamedTuple):
    """A thing with verbs; `usual` is the verb when none is said."""

    about: str
    verbs: Mapping[str, Command]
    usual: str | None = None

    def choose(self, prog: str, words: list[str]) -> tuple[str, Command, list[str]]:
        """The command that `words` begin with, how it is called, and the words after it. Raises Malformed, or Shown with the help."""
        word = words[0] if words else ""
        if word in self.verbs:
            return f"{prog} {word}", self.verbs[word], words[1:]
        if word in ("-h", "--help", "help"):
            raise Shown(self.help(prog))
        if self.usual and (not word or word.startswith("-")):
            return f"{prog} {self.usual}", self.verbs[self.usual], words
        there = f"{prog} {' | '.join(self.verbs)}"
        if not word or word.startswith("-"):
            raise Malformed(f"{prog} needs a verb", remedy=there)
        raise Malformed(
            f"{plain(word[:40])!r} is no verb of {prog}{did_you_mean(word, self.verbs)}",
            remedy=there,
        )

    def carry_out(self, prog: str, words: list[str], works: Works) -> int:
        """Do what the verb says."""
        prog, command, words = self.choose(prog, words)
        return command.carry_out(prog, words, works)

    def help(self, prog: str) -> str:
        """The verbs, a line each."""
        lines = [f"{prog}: {self.about}", "", "Verbs:"]
        lines += [f"  {name:<14}{command.about}" for name, command in self.verbs.items()]
        return "\n".join([*lines, "", f"{prog} VERB --help tells the options of each."]) + "\n"
