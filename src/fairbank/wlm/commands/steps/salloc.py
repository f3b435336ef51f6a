"""salloc and `srun --allocate`: allocate nodes, and run a command or a shell that uses them."""

from __future__ import annotations

import sys

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.options import options_by_flag
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands.job_options import SubmissionWords
from fairbank.wlm.commands.steps.allocation import InteractiveJob, Revoked
from fairbank.wlm.commands.steps.command_group import run_command
from fairbank.wlm.commands.steps.ending_signals import ENDING, handled_signals, interrupt


def run_salloc(name: str, line: SubmissionWords) -> int:
    """Allocate nodes, run the command, and give the nodes back. Return the exit code."""
    with Controller() as controller, handled_signals(ENDING, interrupt):
        job, code = InteractiveJob(controller, name), 1
        try:
            environment = job.allocate(line, has_command=True)
            if "no-shell" in line.options:
                job.number = 0  # it stays
                return 0
            if "bell" in line.options and sys.stdout.isatty():
                print("\a", end="", flush=True)
            controller.close()  # the command may take days
            command = [line.script, *line.arguments] if line.script is not None else []
            watch = (lambda: None) if "quiet" in line.options else job.watch_end
            code = run_command(name, command, environment, watch)
        except Revoked:
            return 1
        finally:
            text = f"{name}: Relinquishing job allocation {job.number}"
            job.complete(code, "" if "quiet" in line.options else text)
    return code


def allocate_by_srun(line: SubmissionWords) -> int:
    """Do as salloc, which reads the rest of the command line and its own variables."""
    options = {name: text for name, text in line.options.items() if name != "allocate"}
    known = {option.name for option in options_by_flag("salloc").values()}
    for name in options.keys() - known:
        raise InvalidInput(f"--{name} has no meaning with --allocate", field=f"--{name}")
    return run_salloc("srun", line._replace(options=options))
