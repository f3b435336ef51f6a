"""salloc: allocate nodes, and run a command or a shell that uses them."""

from __future__ import annotations

import sys

from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands.job_options import SubmissionWords
from fairbank.wlm.commands.steps.allocation import Revoked, allocate, complete, run_command


def run_salloc(line: SubmissionWords) -> int:
    """Allocate nodes, run the command, and give the nodes back. Return the exit code."""
    with Controller() as controller:
        try:
            number, environment = allocate(controller, "salloc", line)
        except Revoked:
            return 1
        if "no-shell" in line.options:
            return 0
        if "bell" in line.options and sys.stdout.isatty():
            print("\a", end="", flush=True)
        controller.close()  # the command may take days
        command = [line.script, *line.arguments] if line.script is not None else []
        code = run_command(command, environment)
        if "quiet" not in line.options:
            print(f"salloc: Relinquishing job allocation {number}", file=sys.stderr, flush=True)
        complete(controller, "salloc", number, code)
    return code
