"""Command line parser: argparse with help that starts with the purpose, and better errors."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from fairbank.cli.framework.screen import Shown, did_you_mean, terminal_width
from fairbank.core.errors import InvalidInput
from fairbank.report.cells import plain


class OfCluster(NamedTuple):
    """Jobs that were typed with their cluster, as the bank prints them: `darwin/812301`."""

    cluster: str
    jobs: Any


class Parser(argparse.ArgumentParser):
    """Argument parser that never prints or exits. Raises InvalidInput, or Shown with the help."""

    def __init__(self, prog: str, about: str, examples: Sequence[str] = ()) -> None:
        super().__init__(
            prog=prog,
            description=about,
            add_help=False,
            allow_abbrev=False,
            formatter_class=_formatter,
            exit_on_error=False,
        )
        self.examples = examples
        self._greedy: set[str] = set()
        self._has_command = False
        self.refuses_repeats = False
        """True for a command that writes: of two values of an option, one would be lost."""
        self.register("action", None, _Store)
        self.register("action", "store", _Store)
        # argparse takes -3 for a value, but -3weeks for an option; the value's own message is
        # better than "expected one argument".
        self._negative_number_matcher = re.compile(r"-\d")

    def format_help(self) -> str:
        """Return the help: purpose, three examples, then the options."""
        places = [_place(action) for action in self._actions if not action.option_strings]
        places += [
            f"{action.option_strings[0]} {action.metavar}"
            for action in self._actions
            if action.option_strings and action.required
        ]
        lines = [f"{self.prog}: {self.description}", ""]
        lines += ["Examples:", *(f"  {example}" for example in self.examples), ""]
        last = ["--", "COMMAND", "[ARGS...]"] if self._has_command else []
        lines += [f"Usage: {' '.join([self.prog, *places, '[OPTIONS]', *last])}", "", ""]
        formatter = self._get_formatter()
        for group in self._action_groups:
            formatter.start_section(_TITLES.get(group.title or "", group.title))
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        return "\n".join(lines) + formatter.format_help()

    def free(self, *flags: str) -> list[str]:
        """Return those flags that the command does not use for something else."""
        return [flag for flag in flags if flag not in self._option_string_actions]

    def takes_next(self, *flags: str) -> None:
        """Let these options take the next word even if it begins with -, as in `-S -Y`."""
        self._greedy.update(flags)

    def takes_command(self) -> None:
        """Let `--` begin the command line of another program, which `options.command` gets."""
        self._has_command = True

    def _joined(self, words: Sequence[str]) -> Sequence[str]:
        joined: list[str] = []
        for word in words:
            if joined and joined[-1] in self._greedy:
                joined[-1] = f"{joined[-1]}={word}"
            else:
                joined.append(word)
        return joined

    def error(self, message: str) -> NoReturn:
        # Only missing arguments and options arrive here; argparse names them in its sentence.
        missing = _MISSING.match(message)
        raise self._invalid(message, missing and missing[1])

    def _invalid(self, message: str, field: str | None) -> InvalidInput:
        return InvalidInput(plain(message), field=field, remedy=f"{self.prog} --help")

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """Return the parsed options. Raises InvalidInput with the nearest names, or Shown."""
        command: Sequence[str] = ()
        if self._has_command and "--" in words:
            place = words.index("--")
            words, command = words[:place], words[place + 1 :]
        if "--helpformat" in words:
            self._require_nothing()
        # An argument that may be left out would be left out at the first option before it.
        read = (
            self.parse_known_intermixed_args
            if any(action.nargs == "?" and not action.option_strings for action in self._actions)
            else self.parse_known_args
        )
        try:
            options, unknown = read(self._joined(words))
        except HelpRequested:
            # Only now: while it parses, argparse sets `nargs` of the arguments to another value.
            raise Shown(self.format_help()) from None
        except argparse.ArgumentError as error:
            # The long name is the last: -M/--clusters.
            field = (error.argument_name or "").rpartition("/")[2]
            raise self._invalid(error.message, field or None) from None
        if not unknown and words.count("--") > 1:
            # argparse takes the second one for a value, and then removes it.
            unknown = ["--"]
        if unknown:
            word = unknown[0]
            is_option = word.startswith("-") and word != "--"
            known = list(self._option_string_actions) if is_option else []
            name = word.partition("=")[0]
            meant = did_you_mean(name, known)
            what = "option" if is_option else "argument"
            raise self._invalid(
                f"{self.prog} has no {what} {plain(word[:40])!r}{meant}",
                name[:40] if is_option else None,
            )
        _set_cluster(options)
        if self._has_command:
            options.command = command
        return options

    def _require_nothing(self) -> None:
        """Let the arguments be left out that only the command's work needs."""
        for action in self._actions:
            if not action.option_strings and action.nargs in (None, "+"):
                action.nargs = "?" if action.nargs is None else "*"
            action.required = False
        for group in self._mutually_exclusive_groups:
            group.required = False

    def typed(self, field: str, words: Sequence[str]) -> str:
        """Return the option or argument in `words` that sets a field of the bank's request."""
        names = _names_of(field)
        for action in self._actions:
            if not action.option_strings and action.dest in names:
                return str(action.metavar or action.dest)
            if names & _names_set_by(action):
                for flag in action.option_strings:
                    if any(_is_typed(flag, word) for word in words):
                        return flag
        return field

    def other_value(self, field: str) -> str | None:
        """Return the remedy for a wrong field of the bank's request, in words of the option that
        sets it; None if no option with a value does, or if it is sent as it was typed.
        """
        if field not in _CONVERTED:
            return None
        names, formatter = _names_of(field), self._get_formatter()
        for action in self._actions:
            if action.option_strings and action.nargs != 0 and names & _names_set_by(action):
                value = formatter._format_args(action, action.dest.upper())
                about = formatter._expand_help(action)
                return f"give another {action.option_strings[0]} {value}: {about}"
        return None


def _set_cluster(options: argparse.Namespace) -> None:
    """Let the cluster of typed jobs stand for -M. Raises InvalidInput if they name several."""
    values = vars(options)
    dest = "clusters" if "clusters" in values else "cluster"
    for name, value in [*values.items()]:
        several = isinstance(value, list)
        parts = value if several else [value]
        if not any(isinstance(part, OfCluster) for part in parts):
            continue
        clusters = [part.cluster if isinstance(part, OfCluster) else None for part in parts]
        given = values[dest]
        clusters += given if isinstance(given, list) else [given] if given else []
        if len(set(clusters)) > 1:
            raise InvalidInput(
                "jobs of several clusters",
                field="JOBID",
                remedy="name those of one cluster at a time, each with it or all by -M",
            )
        values[dest] = clusters[:1] if dest == "clusters" else clusters[0]
        jobs = [part.jobs for part in parts]
        values[name] = jobs if several else jobs[0]


class HelpRequested(Exception):
    """Request for the help of the command that is being parsed."""


class _Store(argparse.Action):
    """Action of an option with a value. Raises ArgumentError if a parser refuses its repetition."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        is_new = getattr(namespace, self.dest, self.default) in (self.default, values)
        if option_string and not is_new and getattr(parser, "refuses_repeats", False):
            raise argparse.ArgumentError(self, "given twice, with different values")
        setattr(namespace, self.dest, values)


class HelpAction(argparse.Action):
    """Action of `-h`: raises HelpRequested."""

    def __call__(self, *_: Any, **__: Any) -> None:
        raise HelpRequested


_IN_WORDS = {
    "X_Fairbank_As": "acting_as",
    "comment": "reason",
    "since": "starttime",
    "start": "starttime",
    "until": "endtime",
    "end": "endtime",
    "gname": "group",
    "uid": "user",
    "owner_uid": "user",
    "cluster": "clusters",
    "job_id": "jobs",
    "time_limit": "time",
    "store.url": "store",
}
"""Fields of the bank's language under other names than our options."""
_CONVERTED = {"amount", "end", "since", "start", "submitted", "time_limit", "until"}
"""Fields that commands send in another form than they read: the bank's remedy names that form."""


def _names_of(field: str) -> set[str]:
    """Return the names under which options may set a field of the bank's request."""
    name = field.removeprefix("--").replace("-", "_")
    return {name, _IN_WORDS.get(name, name)}


def _names_set_by(action: argparse.Action) -> set[str]:
    spellings = (action.dest, *action.option_strings)
    return {spelling.lstrip("-").replace("-", "_") for spelling in spellings}


def _is_typed(flag: str, word: str) -> bool:
    """Return whether a word is this option, perhaps with its value: --end=TIME, -ATIME."""
    return word == flag or word.startswith(f"{flag}=" if flag.startswith("--") else flag)


_MISSING = re.compile(r"(?:the following arguments are required:|one of the arguments) ([^\s,/]+)")

_TITLES = {"positional arguments": "Arguments", "options": "Options"}


def _place(action: argparse.Action) -> str:
    return f"[{action.metavar}]" if action.nargs == "?" else str(action.metavar or action.dest)


class _Formatter(argparse.HelpFormatter):
    """Help formatter that writes the placeholder once: `-A, --account PROJECT`."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        return (
            f"{', '.join(action.option_strings)} {self._format_args(action, action.dest.upper())}"
        )


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Return the formatter with our width: argparse would import shutil to find it."""
    return _Formatter(prog, max_help_position=30, width=min(terminal_width(), 100))
