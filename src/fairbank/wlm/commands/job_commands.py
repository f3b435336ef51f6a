"""Commands sbatch, srun and salloc: options and help; other modules submit jobs and run steps."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from fairbank.core.submission.options import options_by_flag
from fairbank.core.submission.support import REFUSED
from fairbank.core.submission.values import flag
from fairbank.wlm.commands.arguments import CommandOption, print_help, print_version
from fairbank.wlm.commands.job_options import SubmissionWords, read_words
from fairbank.wlm.commands.option_errors import BadOption, print_bad_option

_USAGE = {
    "salloc": "[OPTIONS] [COMMAND [ARGS...]]",
    "sbatch": "[OPTIONS] [SCRIPT [ARGS...]]",
    "srun": "[OPTIONS] PROGRAM [ARGS...]",
}


def run(name: str, words: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    try:
        return _run(name, words)
    except BadOption as error:
        return print_bad_option(name, error)


def _run(name: str, words: Sequence[str]) -> int:
    line = read_words(name, words)
    if "version" in line.options:
        print_version()
    elif "help" in line.options:
        _print_options(name)
    elif "usage" in line.options:
        print(f"Usage: {name} {_USAGE[name]}")
    else:
        # Help starts without the client.
        if name == "srun" and "batch" not in line.options:
            return _run_srun(line)
        if name == "salloc":
            from fairbank.wlm.commands.steps.salloc import run_salloc

            return run_salloc(name, line)
        from fairbank.wlm.commands.job_submission import submit_job

        return submit_job(name, line)
    return 0


def _run_srun(line: SubmissionWords) -> int:
    from fairbank.wlm.commands.steps.background import InBackground

    try:
        if "attach" in line.options:
            from fairbank.wlm.commands.steps.attachment import attach_srun

            return attach_srun(line)
        if "allocate" in line.options:
            from fairbank.wlm.commands.steps.salloc import allocate_by_srun

            return allocate_by_srun(line)
        from fairbank.wlm.commands.steps.srun import run_step

        return run_step(line)
    except InBackground as error:
        for text in error.lines:
            print(f"srun: {text}", file=sys.stderr)
        return 0


def _print_options(command: str) -> None:
    """Print the options that a command has here. sbatch(1) and srun(1) describe them."""
    shown: list[CommandOption] = []
    options = {option.name: option for option in options_by_flag(command).values()}
    for name in sorted(options.keys() - REFUSED.keys()):
        option = options[name]
        value = name.upper().replace("-", "_") if option.reader is not flag else ""
        form = value if not value or option.bare is None else f"[{value}]"
        shown.append(CommandOption(name, option.letter, form))
    print_help(command, _USAGE[command], shown)
