"""Options of a submission from their three sources: #SBATCH lines, variables, command line."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.options import OPTIONS, GivenOption, parse_options
from fairbank.core.submission.script import parse_script
from fairbank.core.submission.values import flag
from fairbank.wlm.commands.option_errors import bad_directive, bad_line, bad_word

_MEMORY = ("mem", "mem-per-cpu", "mem-per-gpu")
_ALTERNATIVES = (
    _MEMORY,
    ("requeue", "no-requeue"),
    ("exclusive", "oversubscribe"),
    ("nodelist", "nodefile"),
    ("ntasks-per-gpu", "gpus-per-task"),
    ("ntasks-per-gpu", "ntasks-per-node"),
    ("cpus-per-gpu", "cpus-per-task"),
)
"""Options of which a later source replaces the other, too."""

_TASK_OPTIONS = {"cpu": "cpus-per-task", "gres/gpu": "gpus-per-task"}
_OF_TASK = re.compile(rf"({'|'.join(_TASK_OPTIONS)})[:=](.+)")

_SEVERAL = "heterogeneous jobs are not supported"


class SubmissionWords(NamedTuple):
    """Command line of a submission: options by name, script or program, its arguments, and all
    words.
    """

    options: Mapping[str, str]
    script: str | None
    arguments: Sequence[str]
    words: Sequence[str]


def read_words(command: str, words: Sequence[str]) -> SubmissionWords:
    """Return the parts of a command line. Raises BadOption for an unknown option."""
    rest = iter(words)
    try:
        given, script = parse_options(rest, command)
    except InvalidInput as error:
        raise bad_line(command, error.message) from error
    if script == ":":  # options of a second component follow
        raise InvalidInput(_SEVERAL, field="script")
    return SubmissionWords(_texts(command, given), script, list(rest), words)


def script_options(script: bytes, name: str) -> dict[str, str]:
    """Return the options of the #SBATCH lines of a script."""
    read = parse_script(script.decode(errors="replace").split("\n"), field=name)
    if read.next_part:
        raise InvalidInput(_SEVERAL, field=name)
    texts = _texts("sbatch", read.options)
    if read.other_word is not None:
        raise bad_directive(read.other_word)
    return texts


def variable_options(command: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options that environment variables such as SBATCH_PARTITION have."""
    options: dict[str, str] = {}
    for option in OPTIONS:
        if command not in option.commands.split():
            continue
        for variable in option.variable_names(command):
            if (text := environment.get(variable)) is not None:
                options[option.name] = "" if option.reader is flag else text or option.bare or ""
                break
    return options


def merged_options(sources: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the options of all sources; a later source wins.

    Raises InvalidInput if one source has two sizes of memory, or two of the CPUs of a task.
    """
    merged: dict[str, str] = {}
    for source in map(_with_task_options, sources):
        if len(source.keys() & set(_MEMORY)) > 1:
            raise InvalidInput(
                "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.", field="--mem"
            )
        for names in _ALTERNATIVES:
            if any(name in source for name in names):
                merged = {name: text for name, text in merged.items() if name not in names}
        merged |= source
    return merged


def _with_task_options(source: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options with --cpus-per-task and --gpus-per-task in place of --tres-per-task."""
    options = dict(source)
    for part in filter(None, options.pop("tres-per-task", "").split(",")):
        match = _OF_TASK.fullmatch(part)
        name = _TASK_OPTIONS[match[1]] if match else "tres-per-task"
        if name in source and match:
            what = f"--{name} and --tres-per-task={match[1]} are mutually exclusive."
            raise InvalidInput(what, field="--tres-per-task", remedy="give one of them")
        text = match[2].replace("=", ":") if match else part
        options[name] = f"{options[name]},{text}" if name in options else text
    return options


def _texts(command: str, given: Iterable[GivenOption]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for option, written, text in given:
        if option is None:
            raise bad_word(command, written)
        texts[option.name] = text
    return texts
