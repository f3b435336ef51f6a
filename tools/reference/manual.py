"""Manual pages in roff: one for each command, from its parser, and one for the reasons."""

from __future__ import annotations

from argparse import SUPPRESS, Action, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fairbank import __version__
from fairbank.bank.refusals import Reason
from fairbank.cli import main as program
from fairbank.cli.commands.bank.sproject import COMMAND as SPROJECT
from fairbank.cli.framework import client_settings as client
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.exit_codes import EXIT_CODES
from fairbank.cli.framework.parser import Parser
from fairbank.cli.framework.write import ENTRY_COLUMNS
from fairbank.client_file import KEYS, SITE_FILE
from fairbank.report.column_texts import ENTRIES, describe

SHARED = ("Output", "Safety", "Bank and user", "Common options")
"""Groups of options that many verbs have; each page prints them once."""
PLANNED = "Columns of a dry run"
"""Title of the columns of all commands that write; each page prints them once."""
TITLES = {"positional arguments": "Arguments", "options": "Options"}


def manual() -> Mapping[str, str]:
    """Return the pages by file name."""
    pages = {
        "fairbank.1": _program_page(),
        "fairbank-reasons.7": _reasons_page(),
        "sproject.1": _page("sproject", SPROJECT, "HADM's words for the same bank"),
    }
    for entry in program.COMMANDS:
        command = program.load_command(entry.location)
        pages[f"fairbank-{entry.name}.1"] = _page(f"fairbank {entry.name}", command, entry.about)
    return pages


def column_sentences(prog: str, command: Command, parser: Parser) -> Mapping[str, str]:
    """Return the sentences about all columns of a command, whatever its options select."""
    if not callable(command.columns):
        return {column.head: describe(prog, column.head) for column in command.columns}
    default = {action.dest: action.default for action in parser._actions}
    variants: list[dict[str, object]] = [{}]
    for action in parser._actions:
        values = (action.choices or ()) if action.const is None else [action.const]
        variants += [{action.dest: value} for value in values]
    return {
        column.head: describe(prog, column.head)
        for variant in variants
        for column in command.columns(Namespace(**default | variant))
    }


def planned_sentences(command: Command) -> Mapping[str, str]:
    """Return the sentences about the columns of a dry run, for a command with no other columns."""
    columns = ENTRY_COLUMNS if command.reads and not command.columns else ()
    return {column.head: describe(ENTRIES, column.head) for column in columns}


def escape(text: str) -> str:
    """Return text in which roff finds no commands."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _header(name: str, section: int, about: str) -> list[str]:
    page = name.replace(" ", "-")
    return [
        '.\\" generated from the code by `make reference`; do not edit by hand',
        f'.TH "{page.upper()}" {section} "" "fairbank {__version__}" "Fairbank"',
        ".SH NAME",
        f"{escape(page)} \\- {escape(about)}",
    ]


def _page(name: str, command: Command | Noun, about: str) -> str:
    verbs = command.verbs if isinstance(command, Noun) else {"": command}
    lines = _header(name, 1, about)
    parsers = {
        f"{name} {verb}".strip(): part.parser(f"{name} {verb}".strip())
        for verb, part in verbs.items()
    }
    lines.append(".SH SYNOPSIS")
    for prog, parser in parsers.items():
        places = " ".join(
            f"\\fI{escape(_argument(action))}\\fR"
            for action in parser._actions
            if not action.option_strings
        )
        lines += [f"\\fB{escape(prog)}\\fR {places} [\\fIOPTIONS\\fR]".replace("  ", " "), ".br"]
    for prog, parser in parsers.items():
        part = verbs[prog.removeprefix(name).strip()]
        lines += [
            f".SH {escape(prog.upper())}" if isinstance(command, Noun) else ".SH DESCRIPTION",
            f"{escape(part.about)}.",
        ]
        if isinstance(command, Noun) and prog == f"{name} {command.default}":
            lines += [".PP", "This is meant where no verb is said."]
        lines += [".PP", "Examples:", *_verbatim(parser.examples)]
        lines += _groups(parser, own=True)
        if columns := column_sentences(prog, part, parser):
            lines += [".SS Columns", *_pairs(columns.items())]
    seen: set[str] = set()
    for parser in parsers.values():
        lines += _groups(parser, own=False, seen=seen)
    if planned := next(filter(None, map(planned_sentences, verbs.values())), None):
        lines += [f".SH {PLANNED.upper()}", *_pairs(planned.items())]
    return "\n".join([*lines, *_footer(name)]) + "\n"


def _argument(action: Action) -> str:
    return f"[{action.metavar}]" if action.nargs == "?" else str(action.metavar or action.dest)


def _verbatim(lines: Iterable[str]) -> list[str]:
    return [".PP", ".nf", *(f"    {escape(line)}" for line in lines), ".fi"]


def _groups(parser: Parser, *, own: bool, seen: set[str] | None = None) -> Iterator[str]:
    """Yield the options of a command: its own, or the shared ones that are not in `seen`."""
    seen = set() if seen is None else seen
    formatter = parser._get_formatter()
    for group in parser._action_groups:
        title = TITLES.get(group.title or "", group.title or "")
        actions = [action for action in group._group_actions if action.help is not SUPPRESS]
        fresh = [action for action in actions if own or f"{title} {_names(action)}" not in seen]
        if not fresh or (title in SHARED) is own:
            continue
        if own or title not in seen:
            yield f"{'.SS' if own else '.SH'} {escape(title if own else title.upper())}"
        seen |= {title, *(f"{title} {_names(action)}" for action in fresh)}
        for action in fresh:
            choices = (
                f"; one of {', '.join(map(str, action.choices))}"
                if action.choices is not None
                else ""
            )
            text = formatter._expand_help(action) if action.help else ""
            yield from (
                ".TP",
                _names(action),
                escape(f"{text}{choices}".lstrip("; ") or "as in Slurm"),
            )


def _names(action: Action) -> str:
    takes = (
        ""
        if action.nargs == 0
        else f" \\fI{escape(str(action.metavar or action.dest.upper()))}\\fR"
    )
    if not action.option_strings:
        return f"\\fI{escape(str(action.metavar or action.dest))}\\fR"
    return ", ".join(f"\\fB{escape(flag)}\\fR" for flag in action.option_strings) + takes


def _footer(name: str) -> list[str]:
    lines = [".SH EXIT STATUS", *_pairs((str(code), about) for code, about in EXIT_CODES.items())]
    if name != "fairbank":
        lines += [
            ".SH SEE ALSO",
            (
                "\\fBfairbank\\fR(1) for files and environment variables;"
                " \\fBfairbank\\-reasons\\fR(7)"
            ),
        ]
    return lines


def _pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, about in pairs:
        yield from (".TP", f"\\fB{escape(name)}\\fR", escape(about))


def _program_page() -> str:
    lines = _header("fairbank", 1, program.ABOUT)
    lines += [
        ".SH SYNOPSIS",
        "\\fBfairbank\\fR [\\fICOMMAND\\fR] [\\fIOPTIONS\\fR]",
        ".SH DESCRIPTION",
    ]
    lines += [
        "Without a command: your projects on one screen. Each command has its own page, such as "
        "\\fBfairbank\\-balance\\fR(1)."
    ]
    lines += [".PP", "Examples:", *_verbatim(program.EXAMPLES)]
    for group in dict.fromkeys(entry.group for entry in program.COMMANDS):
        lines += [
            f".SS {escape(group)}",
            *_pairs(
                (entry.name, entry.about) for entry in program.COMMANDS if entry.group == group
            ),
        ]
    lines += [".SH FILES", *_pairs(_files())]
    own = [(f"FAIRBANK_{key.upper()}", about) for key, about in KEYS.items()]
    lines += [
        ".SH ENVIRONMENT",
        "Options take precedence over the environment, and the environment over files.",
    ]
    lines += _pairs([*own, *client.ENVIRONMENT.items()])
    pages: Sequence[str] = [
        f"\\fBfairbank\\-{escape(entry.name)}\\fR(1)" for entry in program.COMMANDS
    ]
    return (
        "\n".join(
            [
                *lines,
                *_footer("fairbank"),
                ".SH SEE ALSO",
                ", ".join([*pages, "\\fBfairbank\\-reasons\\fR(7)", "\\fBsproject\\fR(1)"]),
            ]
        )
        + "\n"
    )


def _files() -> list[tuple[str, str]]:
    keys = ", ".join(KEYS)
    return [
        (
            "~/.config/fairbank/client.toml",
            f'address of the bank and defaults: lines KEY = "TEXT" of {keys}',
        ),
        (SITE_FILE, "the same for all users of a host"),
        (client.SITE_SOCKET, "socket of the site's bank"),
    ]


def _reasons_page() -> str:
    lines = _header("fairbank reasons", 7, "reasons of refusals, and remedies")
    lines += [
        ".SH DESCRIPTION",
        "Words in capitals in a remedy are placeholders; the refusal itself names the figures.",
    ]
    for reason in Reason:
        info = reason.info
        lines += [
            f".SH {escape(reason.name)}",
            f"{escape(info.message)}.",
            ".PP",
            escape(info.explanation),
            ".PP",
            f"What to do: {escape(info.general_remedy)}",
        ]
        lines += [".PP", f"Exit code {reason.kind.exit_code}, HTTP status {reason.kind.status}."]
    return (
        "\n".join([*lines, ".SH SEE ALSO", "\\fBfairbank\\-jobs\\fR(1), \\fBfairbank\\fR(1)"])
        + "\n"
    )
