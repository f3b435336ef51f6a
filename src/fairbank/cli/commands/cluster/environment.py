"""Command `fairbank env`: the lines for a shell that make it use the cluster."""

from __future__ import annotations

import os
import shlex
import shutil
from typing import TYPE_CHECKING

from fairbank.cli.commands.cluster.directory import VARIABLE, find_directory
from fairbank.cli.framework.command import host_command
from fairbank.cli.framework.options import add_option

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser


def _add(parser: Parser) -> None:
    add_option(parser, "--fish", "lines for the shell fish")


def _env(context: Context, options: Namespace) -> int:
    directory = find_directory()
    directory.check_exists()
    values = {VARIABLE: directory.path}
    if directory.has_bank:
        values["FAIRBANK_CONFIG"] = directory.bank_settings
        values["FAIRBANK_AGENT_CONFIG"] = directory.agent_settings
    links = str(directory.links)
    if options.fish:
        # In single quotes fish reads \\ and \' only.
        quoted = {key: _fish(str(value)) for key, value in values.items()}
        lines = [f"set -gx PATH {_fish(links)} $PATH"]
        lines += [f"set -gx {key} {value}" for key, value in quoted.items()]
        lines += ["set -e FAIRBANK_SERVER"]
    else:
        lines = [f'export PATH={shlex.quote(links)}:"$PATH"']
        lines += [f"export {key}={shlex.quote(str(value))}" for key, value in values.items()]
        # It would come before FAIRBANK_CONFIG.
        lines += ["unset FAIRBANK_SERVER"]
    context.print_text("\n".join(lines))
    if not directory.is_up():
        context.note("The cluster is not up. Start it: fairbank cluster up")
    others = [part for part in os.get_exec_path() if part != links]
    if slurm := shutil.which("squeue", path=os.pathsep.join(others)):
        context.note(f"There is a Slurm on PATH: from now on this shell uses the cluster in"
                     f" {directory.path} instead of {slurm}")  # fmt: skip
    return 0


def _fish(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


COMMAND = host_command(
    "print what makes a shell use the cluster of this host",
    (
        'eval "$({})"',
        "{} --fish | source",
        "FAIRBANK_CLUSTER=/var/tmp/queue {}      of a cluster in another directory",
    ),
    _add,
    _env,
)
