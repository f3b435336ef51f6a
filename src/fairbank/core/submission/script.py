"""Batch script: its form, and its #SBATCH lines, options of sbatch up to the first command.

Lines with a second # or a blank before the mark are comments. An option may take its value from
the next line. Source: sbatch(1).
"""

from collections.abc import Iterable
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.options import GivenOption, parse_options

LINES_MAX = 10_000
_MARK = "#SBATCH"
_NEXT_PART = ["hetjob"], ["packjob"]


_NOT_A_SCRIPT = (
    "This does not look like a batch script.  The first\n"
    "line must start with #! followed by the path to an interpreter.\n"
    "For instance: #!/bin/sh"
)
_BINARY = "The Slurm controller does not allow scripts that\ncontain a NULL character '\\0'."
_DOS = "Batch script contains DOS line breaks (\\r\\n)\ninstead of expected UNIX line breaks (\\n)."


class ScriptOptions(NamedTuple):
    """Options of a script in their order.

    next_part   `hetjob`, if another component follows
    other_word  first word that is no option, of which sbatch has none
    """

    options: tuple[GivenOption, ...]
    next_part: str = ""
    other_word: str | None = None


def parse_script(lines: Iterable[str], *, field: str) -> ScriptOptions:
    """Parse the options of a script; of a heterogeneous job, those of the first component.

    Raises InvalidInput if a line has an open quote, or the last option lacks its value.
    """
    words: list[str] = []
    next_part = ""
    for number, line in enumerate(lines, 1):
        if number > LINES_MAX:
            break
        if line.startswith(_MARK):
            line_words = _split(line.removeprefix(_MARK), number, field)
            if line_words in _NEXT_PART:
                next_part = line_words[0]
                break
            words += line_words
        elif line.strip() and not line.startswith("#"):
            break
    rest = iter(words)
    options, other_word = parse_options(rest, "sbatch")
    other = other_word
    while other is not None:
        # It may be the value of an option of a later release.
        given, other = parse_options(rest, "sbatch")
        options += given
    return ScriptOptions(tuple(options), next_part, other_word)


def _split(line: str, number: int, field: str) -> list[str]:
    """Return the words of a line; a # outside of quotes begins a comment."""
    try:
        import shlex  # sbatch alone needs it

        return shlex.split(line, comments=True)
    except ValueError as bad:
        raise InvalidInput(
            f"line {number} cannot be read: {bad}", field=field, remedy="close the quotes"
        ) from bad


def check_script(script: bytes) -> None:
    """Raise InvalidInput, with the sentences of sbatch, for what is no batch script."""
    text, program = "write text that begins with #!/bin/sh", "run a program with --wrap"
    faults = (
        (not script, "Batch script is empty!", text),
        (not script.strip(), "Batch script contains only whitespace!", text),
        (not script.startswith(b"#!"), _NOT_A_SCRIPT, program),
        (b"\0" in script, _BINARY, program),
        (b"\r\n" in script, _DOS, "convert it: sed -i 's/\\r$//' FILE"),
    )
    for is_bad, sentence, remedy in faults:
        if is_bad:
            raise InvalidInput(sentence, field="script", remedy=remedy)
