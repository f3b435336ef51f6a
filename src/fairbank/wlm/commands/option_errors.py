"""Options of sbatch and srun that cannot be read: lines and exit codes as Slurm has them.

Source: sbatch of Slurm 22.05. getopt_long(3) and most values end it with 255, numbers with 1.
"""

from __future__ import annotations

import re
import sys

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import NICE_MAX, PRIORITY_MAX
from fairbank.core.submission import values as v
from fairbank.core.submission.command_words import unknown_option
from fairbank.core.submission.options import Option, options_by_flag
from fairbank.wlm.commands.slurm_errors import slurm_sentence

_BAD_LINE_CODE, _BAD_NUMBER_CODE = 255, 1
_READ_BY_CONTROLLER = (v.array, v.dependencies, v.licenses)
"""Readers of values that Slurm's sbatch sends as they are, and slurmctld refuses."""
_WHOLE_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)
_NODE_RANGE = re.compile(r"(\d+)-(\d+)", re.ASCII)


class BadOption(InvalidInput):
    """Option that cannot be read. `line` is Slurm's line about it, `code` its exit code."""

    def __init__(self, line: str, code: int = _BAD_LINE_CODE, *, cause: InvalidInput) -> None:
        super().__init__(cause.message, field=cause.field, remedy=cause.remedy)
        self.line, self.code = line, code


def bad_word(command: str, flag: str) -> BadOption:
    """Return the error of a word that is no option of the command, or of several."""
    return bad_line(command, unknown_option(flag, options_by_flag(command)))


def bad_directive(word: str) -> BadOption:
    """Return the error of a word of a #SBATCH line that is neither an option nor its value."""
    message = f"Invalid directive found in batch script: {word[:40]}"
    return BadOption(f"sbatch: error: {message}", cause=InvalidInput(message))


def bad_value(command: str, option: Option, text: str, error: InvalidInput) -> BadOption:
    """Return the error of an option whose value cannot be read; `error` is that of its reader."""
    reader, shown = option.reader, text[:40]
    if reader is v.flag:
        return bad_line(command, f"option '{option.flag}' doesn't allow an argument")
    if reader in (v.gres, v.gpus):
        return bad_gres(command, error)
    if reader in _READ_BY_CONTROLLER:
        sentence = slurm_sentence(error) or error.message
        line = f"Batch job submission failed: {sentence}"
        return BadOption(f"{command}: error: {line}", _BAD_NUMBER_CODE, cause=error)
    if reader in (v.count, v.whole, v.zero_or_one):
        line = f'Invalid numeric value "{shown}" for {option.flag}.'
        return BadOption(f"{command}: error: {line}", _BAD_NUMBER_CODE, cause=error)
    if reader is v.cpu_binding:
        line = f"Failed to parse {option.flag}= values."
        return BadOption(f"{command}: fatal: {line}", _BAD_NUMBER_CODE, cause=error)
    if reader is v.gpu_binding:
        return BadOption(f"{command}: error: Invalid {option.flag} argument: {shown}", cause=error)
    if reader is v.resource_limits:
        line = f"{option.flag}={shown} is not valid."
        return BadOption(f"{command}: error: {line}", _BAD_NUMBER_CODE, cause=error)
    line = f"Invalid {option.flag} specification"
    if reader is v.nice and _WHOLE_NUMBER.fullmatch(text):
        line = f"Invalid {option.flag} value, out of range (+/- {NICE_MAX})"
    if reader is v.priority and _WHOLE_NUMBER.fullmatch(text):
        most = f"Priority must be < {PRIORITY_MAX - 1}"
        line = "Priority must be >= 0" if text.startswith("-") else most
    if reader is v.nodes:
        sizes = _NODE_RANGE.fullmatch(shown)
        line = f'"{shown}" is not a valid node count'
        if sizes is not None and int(sizes[1]):
            line = f"Maximum node count {sizes[2]} is less than minimum node count {sizes[1]}"
    return BadOption(f"{command}: error: {line}", cause=error)


def bad_gres(command: str, error: InvalidInput) -> BadOption:
    """Return the error of options that request GPUs."""
    line = f"{command}: error: Invalid generic resource (gres) specification"
    return BadOption(line, _BAD_NUMBER_CODE, cause=error)


def bad_node_count(command: str, named: int, most: int) -> BadOption:
    """Return the error of --nodelist with more nodes than --nodes allows."""
    cause = InvalidInput(
        f"--nodelist names {named} nodes, and --nodes allows no more than {most}",
        field="--nodes",
        remedy=f"use -N {named}, or name fewer",
    )
    line = f"{command}: error: invalid number of nodes (-N {named}-{most})"
    return BadOption(line, _BAD_NUMBER_CODE, cause=cause)


def print_bad_option(command: str, error: BadOption) -> int:
    """Print what is wrong and the line of Slurm, and return the exit code."""
    if error.message not in error.line:
        remedy = f" ({error.remedy})" if error.remedy else ""
        print(f"{command}: {error.message}{remedy}", file=sys.stderr)
    print(error.line, file=sys.stderr)
    return error.code


def bad_line(command: str, message: str) -> BadOption:
    """Return the error of a command line, in the words of getopt_long(3)."""
    line = f'{command}: {message}\nTry "{command} --help" for more information'
    return BadOption(line, cause=InvalidInput(message))
