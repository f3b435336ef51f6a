"""sattach and `srun --attach`: show the output of a step that runs, and give it input."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from fairbank.core.errors import InvalidInput
from fairbank.core.hostlist import compress
from fairbank.core.units import counted
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.client.requests import FoundStep
from fairbank.wlm.commands.arguments import CommandOption, read_command_line
from fairbank.wlm.commands.job_options import SubmissionWords
from fairbank.wlm.commands.steps.ending_signals import ENDING, handled_signals, interrupt
from fairbank.wlm.commands.steps.step_output import STANDARD, StepOutput
from fairbank.wlm.commands.steps.step_run import StepOptions, StepRun
from fairbank.wlm.commands.steps.terminal import RawTerminal
from fairbank.wlm.protocol.frames import ERRORS, OUTPUT

USAGE = "[OPTIONS] JOB[.STEP]"
OPTIONS = (
    CommandOption("error-filter", "", "TASK", "as --output-filter, for the errors"),
    CommandOption("from-start", about="show also earlier output, as far as it is kept"),
    CommandOption("input-filter", "", "TASK", "not supported: srun -i chooses the task"),
    CommandOption("label", "l", about="begin each line with the number of its task"),
    CommandOption("layout", about="show nodes and tasks of the step, and end"),
    CommandOption(
        "output-filter", "", "TASK", "show output and errors of this task alone; - is all"
    ),
    CommandOption("pty", about="give the terminal to the task 0 of srun --pty"),
    CommandOption("quiet", "Q", about="show only errors"),
    CommandOption("verbose", "v", about="no effect"),
)
_OF_SRUN = frozenset("attach from-start label pty quiet unbuffered".split())


def run(name: str, words: Sequence[str]) -> int:
    """Attach to a step, and return the exit code of its srun. Ctrl-C ends this command alone."""
    line = read_command_line(name, USAGE, OPTIONS, words)
    if line is None:
        return 0
    if len(line.words) != 1:
        raise InvalidInput("one step is needed", field="step", remedy=f"Usage: {name} {USAGE}")
    if "input-filter" in line.options:
        raise InvalidInput(
            "--input-filter is not supported: srun -i chooses the task", field="--input-filter"
        )
    only = _filters(line.options)
    if only and "pty" in line.options:
        raise InvalidInput("don't specify both --pty and I/O filtering", field="--pty")
    with Controller() as controller:
        target = find_step(controller, line.words[0])
        if "layout" in line.options:
            _print_layout(target)
            return 0
        tasks = _task_count(target)
        for task in only.values():
            if task >= tasks:
                raise InvalidInput(
                    f"{target.step} has no task {task}",
                    field="--output-filter"
                    if "output-filter" in line.options
                    else "--error-filter",
                    remedy=f"it has {counted(tasks, 'task')}, from 0 on",
                )
        return _attach(controller, target, line.options, name=name, only=only)


def attach_srun(line: SubmissionWords) -> int:
    """Attach srun to a step, forward its signals, and return the exit code."""
    if line.script is not None:
        raise InvalidInput("srun --attach takes no program", field="--attach")
    for option in line.options.keys() - _OF_SRUN:
        raise InvalidInput(f"--{option} has no meaning with --attach", field=f"--{option}")
    with Controller() as controller:
        target = find_step(controller, line.options["attach"])
        return _attach(controller, target, line.options, name="srun", only={})


def find_step(controller: Controller, text: str) -> FoundStep:
    """Return the step of a text such as `7.0`; of `7` the only one that runs."""
    job, point, number = text.partition(".")
    if number in ("batch", "extern"):
        raise InvalidInput("Cannot be used with extern or batch steps", field="step")
    if not job or (point and not (number.isascii() and number.isdecimal())):
        raise InvalidInput(
            f"{text[:40]!r} is not a step", field="step", remedy="name one such as 7.0"
        )
    return requests.find_step(controller, job, int(number) if point else None)


def _attach(
    controller: Controller,
    target: FoundStep,
    options: Mapping[str, str],
    *,
    name: str,
    only: Mapping[int, int],
) -> int:
    """Follow the step to its end."""
    step, has_terminal = target.step, "pty" in options
    ranks = _task_count(target)
    output = StepOutput(
        STANDARD,
        ranks,
        has_labels="label" in options,
        is_buffered=not ("unbuffered" in options or has_terminal),
        only=only,
    )
    behaviour = StepOptions(
        name=name, is_attached=True, has_terminal=has_terminal, is_quiet="quiet" in options
    )
    # The end of /dev/null is not meant for the tasks.
    stdin = None if os.path.samestat(os.fstat(0), os.stat(os.devnull)) else 0
    followed = StepRun(controller, step, output, stdin, behaviour)
    with handled_signals(ENDING, interrupt), RawTerminal(is_raw=has_terminal):
        return followed.follow("start" if "from-start" in options else "end")


def _filters(options: Mapping[str, str]) -> dict[int, int]:
    """Return the task that alone is shown, by kind of frame. Errors are as output by default."""
    only: dict[int, int] = {}
    for kind, name in (
        (ERRORS, "output-filter"),
        (OUTPUT, "output-filter"),
        (ERRORS, "error-filter"),
    ):
        text = options.get(name)
        if text is None:
            continue
        if text == "-":
            only.pop(kind, None)
            continue
        if not (text.isascii() and text.isdecimal()):
            raise InvalidInput(
                f"{text[:40]!r} is not the number of a task", field=f"--{name}", remedy="from 0 on"
            )
        only[kind] = int(text)
    return only


def _task_count(target: FoundStep) -> int:
    return sum(len(node.ranks) for node in target.step.nodes)


def _print_layout(target: FoundStep) -> None:
    """Print nodes and tasks as Slurm's sattach does."""
    nodes = target.step.nodes
    names, tasks = compress([one.node for one in nodes]), _task_count(target)
    print(f"Job step layout:\n\t{tasks} tasks, {len(nodes)} nodes ({names})\n")
    for number, node in enumerate(nodes):
        ranks = "".join(f"{rank} " for rank in node.ranks)
        print(f"\tNode {number} ({node.node}), {len(node.ranks)} task(s): {ranks}")
    sys.stdout.flush()
