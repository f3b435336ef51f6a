"""Reference page of the workload manager's commands under Slurm's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from fairbank.core.submission.options import OPTIONS as OPTIONS_OF_JOBS
from fairbank.core.submission.support import NO_EFFECT, REFUSED
from fairbank.report.slurm import sacct, sacctmgr, sinfo, squeue
from fairbank.report.slurm.layout import Columns
from fairbank.wlm.commands import scancel, scontrol
from fairbank.wlm.commands.arguments import HELP, CommandOption
from fairbank.wlm.commands.steps import attachment, sbcast
from fairbank.wlm.commands.tables import priorities, show
from fairbank.wlm.commands.tables import sacct as accounting
from fairbank.wlm.commands.tables import sacctmgr as accounts
from fairbank.wlm.commands.tables import sinfo as machine
from fairbank.wlm.commands.tables import squeue as queue

_INTRODUCTION = """# Commands of the workload manager

The embedded workload manager has commands under Slurm's names. Options, columns, messages and exit
codes are those of Slurm 24.11: its manual pages hold, except for what is missing here.

- `--help`, `--usage` and `--version` exist in every command.
- A variable stands for its option, and the command line counts more. Times are in the time zone of
  `TZ`. `SLURM_TIME_FORMAT` is their form: `standard`, `relative`, or one
  of strftime(3).
- squeue takes its columns from `SQUEUE_FORMAT` or `SQUEUE_FORMAT2`, sinfo from `SINFO_FORMAT` or
  `SINFO_FORMAT2`, unless an option selects columns.
- `--json` of squeue, sinfo, sacct and scontrol show (of jobs, nodes, partitions and reservations)
  has the shape of Slurm's, with the fields of the tables. Steps have no JSON form.
- sacctmgr only shows. Accounts are the projects of the bank, which `fairbank project` changes; QOS,
  limits and shares are in `wlm.toml`.
- `seff JOB` prints what a job used of its CPUs and memory, in the form of seff 2.1. It needs no
  Perl.
- `srun --allocate` does as salloc, whose options and variables it takes.
- SIGINT, SIGTERM, SIGHUP and SIGQUIT end a command that waits for nodes, for cores of a step or for
  the controller; a job that has not begun is cancelled. While its tasks run, srun forwards SIGTERM,
  SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2. The first Ctrl-C shows the state of the tasks, a second
  within a second is sent to them, and a third kills them. A signal while the controller creates a
  job or step takes effect after its answer, a second one at once. If the terminal of srun or salloc
  disappears, the step or job ends.
- The command of salloc is a process group of its own. salloc in the foreground gives it the
  terminal at once if that is the standard input, else when the command reads from it; in Slurm only
  if it is the standard input. salloc forwards SIGTERM to the group, and gives the nodes back after
  SIGHUP. It also forwards SIGINT and SIGQUIT, which Slurm's salloc ignores, so that a command with
  another standard input gets Ctrl-C. Ctrl-Z stops both; in Slurm it stops the command, and salloc
  waits. salloc ends as after SIGHUP if its command reads from the terminal in the background, and
  no shell can bring it to the foreground. If the job ends before the command, salloc prints that
  its allocation has been revoked, waits for the command, and exits with its exit code.
- `sattach JOB.STEP` and `srun --attach JOB` show what a step writes from now on, with
  `--from-start` also earlier output, as far as it is kept. Without a number, it is the only step
  that runs. The first that attaches while no other has the input gives it; `--input-filter` is
  refused. For a minute after a step has ended, they show what no srun has written. Ctrl-C ends
  sattach alone, and srun forwards it. One that is stopped, or much slower than the task, delays no
  task: when it is more than 8 MiB behind, it skips older output, and says how many bytes are
  missing. The srun of the step misses nothing.
- `~&` at the start of a line puts an srun at a terminal into the background. Its output goes to
  `slurm-JOB.STEP.out` and `.err` in the working directory, input of the tasks ends, and the last
  line says how to attach again. `~~` there is a `~`.
- scrontab, sreport, strigger and sview say that they are not there: on a host with a Slurm, their
  names would reach that one.
- sdiag counts since the start of the controller: nothing resets its numbers. It prints N/A for what
  the controller does not count. Requests have the names and numbers of Slurm's messages; one that
  Slurm does not have has the number 0.
"""
_SUBMISSION = """## sbatch, srun and salloc

Options come from `#SBATCH` lines, then from variables, then from the command line; a later source
counts more. `srun --batch PROGRAM ARGS...` submits a script as it is; any other program runs as a
step on all nodes of the job. srun and salloc read no `#SBATCH` lines.

`sbatch --wait` ends with the exit code of the job, and with 1 if a signal ended the job. An option
without effect is accepted, with a line on standard error. One that is refused ends the submission
with the reason.
"""
OPTIONS: Mapping[str, Sequence[CommandOption]] = {
    "squeue": queue.OPTIONS,
    "sinfo": machine.OPTIONS,
    "sacct": accounting.SACCT_OPTIONS,
    "sstat": accounting.SSTAT_OPTIONS,
    "sprio": priorities.SPRIO_OPTIONS,
    "sshare": priorities.SSHARE_OPTIONS,
    "sacctmgr": accounts.OPTIONS,
    "sdiag": show.SDIAG_OPTIONS,
    "scancel": scancel.OPTIONS,
    "scontrol": scontrol.OPTIONS,
    "sattach": attachment.OPTIONS,
    "sbcast": sbcast.OPTIONS,
}
"""Options of each command that has a page here."""
_SHOWN = (
    "assoc_mgr, config, daemons, hostlist, hostlistsorted, hostnames, job, license, node,"
    " partition, reservation or step, with a name"
)
"""What `scontrol show` shows."""
_BY_LETTER = {"squeue": squeue.COLUMNS, "sinfo": sinfo.COLUMNS}
_BY_NAME: Mapping[str, Columns] = {
    "sacct": sacct.SACCT,
    "sstat": sacct.SSTAT,
    "sacctmgr show accounts": sacctmgr.ACCOUNT,
    "sacctmgr show associations": sacctmgr.ASSOCIATION,
    "sacctmgr show users": sacctmgr.USER,
    "sacctmgr show qos": sacctmgr.QOS,
    "sacctmgr show clusters": sacctmgr.CLUSTER,
    "sacctmgr show tres": sacctmgr.TRES,
}


def wlm_commands_page() -> str:
    """Return the page with the options and columns of the commands."""
    lines = [_INTRODUCTION, _SUBMISSION, *_submission_table(), ""]
    for name, options in OPTIONS.items():
        lines += [f"## {name}", "", *_option_table(options), ""]
        if name in _BY_LETTER:
            lines += ["Columns by name and letter:", "", _with_letters(_BY_LETTER[name]), ""]
    lines += [*_control_table(), "", "## Columns of accounting", ""]
    for name, columns in _BY_NAME.items():
        lines += [f"{name}: {', '.join(f'`{column}`' for column in columns)}.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _submission_table() -> Iterator[str]:
    submitting = ("sbatch", "srun", "salloc")
    yield "| Option | Variable | Commands | Here |"
    yield "| --- | --- | --- | --- |"
    for option in OPTIONS_OF_JOBS:
        commands = [name for name in submitting if name in option.commands.split()]
        if not commands or option.name in ("help", "usage", "version"):
            continue
        letter = f"`-{option.letter}` " if option.letter else ""
        variables = " ".join(
            dict.fromkeys(chain.from_iterable(map(option.variable_names, commands)))
        )
        reason = REFUSED.get(option.name)
        effect = f"refused: {reason}" if reason else ""
        effect = "no effect" if option.name in NO_EFFECT else effect
        only = "" if len(commands) == len(submitting) else " ".join(commands)
        yield f"| {letter}`--{option.name}` | {variables} | {only} | {effect} |"


def _control_table() -> Iterator[str]:
    yield "| Command of scontrol | |"
    yield "| --- | --- |"
    yield f"| `show` | {_SHOWN} |"
    for name, command in scontrol.COMMANDS.items():
        operands = command.operands.replace("|", "\\|")
        yield f"| `{name}` | {operands} |"
    for name, reason in scontrol.REFUSED.items():
        yield f"| `{name}` | refused: {reason} |"


def _option_table(options: Sequence[CommandOption]) -> Iterator[str]:
    yield "| Option | Value | Variable | Effect |"
    yield "| --- | --- | --- | --- |"
    for option in options:
        if option in HELP:
            continue
        letter = f"`-{option.letter}` " if option.letter else ""
        cells = (f"{letter}`--{option.name}`", option.value, option.variable, option.about)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _with_letters(columns: Columns) -> str:
    texts = (
        f"`{column.name}`" + (f" (`%{column.letter}`)" if column.letter else "")
        for column in columns.values()
    )
    return f"{', '.join(texts)}."
