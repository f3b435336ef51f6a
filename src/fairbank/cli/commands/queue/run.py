"""Command `fairbank run`: submit a command as a job, in one line."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from fairbank.cli.commands.queue.jobs import find_manager, job_name, wait_for_ends
from fairbank.cli.framework.command import host_command
from fairbank.cli.framework.options import add_option, at_least_one
from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.core.time import DAY, MINUTE, parse_duration, show_duration, show_rounded
from fairbank.core.units import counted
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from fairbank.cli.commands.queue.jobs import JobInfo, Manager
    from fairbank.cli.framework.context import Context, Row
    from fairbank.cli.framework.parser import Parser

_HOUR = 60 * MINUTE
_UNITS = {"m": MINUTE, "h": _HOUR, "d": DAY}


def _add(parser: Parser) -> None:
    parser.takes_command()
    add_option(parser, "-c, --cpus N", "CPUs of the job, on one node", type=at_least_one)
    add_option(parser, "--mem SIZE", "memory: 16G, 4000M (default: that of the partition)")
    add_option(parser, "--gpus N", "GPUs of the job", type=at_least_one)
    about = "time limit: 30m, 2h, 1d, or as for sbatch (default: that of the partition)"
    add_option(parser, "-t, --time LIMIT", about, type=_limit)
    add_option(parser, "-A, --account PROJECT", "who pays")
    add_option(parser, "--name NAME", "name of the job (default: that of the command)")
    about = "start only after these jobs have ended, however they ended"
    add_option(parser, "--after JOB", about, type=job_name, action="append", default=[])
    add_option(parser, "--wait", "wait for the end, and exit as the command did")
    about = "print its output while it runs, and exit as the command did"
    add_option(parser, "-f, --follow", about)


def _run(context: Context, options: Namespace) -> int:
    if not options.command:
        raise InvalidInput(
            "there is no command to run",
            field="COMMAND",
            remedy=f"write it after two dashes: {context.prog} -c 4 -t 2h -- python train.py",
        )
    if options.command[0].startswith("-"):
        # exec of the shell would take it for an option; not every shell ends those with --.
        raise InvalidInput(
            f"{plain(options.command[0][:40])!r} is no command",
            field="COMMAND",
            remedy="options of the job come before the two dashes",
        )
    manager = find_manager()
    # A job that has ended holds up nothing, and the controller may have forgotten it.
    before = [name for name in options.after if _is_open(manager, name)]
    words, script = list(_sbatch_options(options, before)), batch_script(options.command)
    start = None if before else manager.expected_start(words, script)
    name = manager.submit(words, script)
    # The number first: the rest takes longer, and no error may hide that the job is submitted.
    sys.stdout.write(f"job {name}: ")
    sys.stdout.flush()
    try:
        (job,) = manager.jobs(name)
        quote = _quote(context, manager, job)
        facts = ", ".join(_facts(context, job, quote))
        when = _when(context, job, quote, start, before)
        context.print_text(plain(f"{facts}; {when}"))
    except FairbankError as error:
        context.print_text("submitted")
        context.note(f"! {error.message}")
    sys.stdout.flush()  # before the output of the job
    if not (options.wait or options.follow):
        return 0
    try:
        return _end(context, manager, name, follows=options.follow)
    except KeyboardInterrupt:
        context.note(f"job {name} goes on; to end it: fairbank cancel {name}")
        raise


def _is_open(manager: Manager, name: str) -> bool:
    return not all(job.has_ended for job in manager.jobs(name))


def _end(context: Context, manager: Manager, name: str, *, follows: bool) -> int:
    """Wait for the end of a job, and return the exit code of its command."""
    print_new = None
    if follows:
        from fairbank.cli.commands.queue.log import OutputFile

        print_new = OutputFile(manager.jobs(name)[0].std_out).print_new
    (job,) = wait_for_ends(context, manager, [name], print_new)
    if job.status:
        context.note(f"job {name}: {job.end}")
    return job.status


def batch_script(command: Sequence[str]) -> bytes:
    """Return a script that becomes the command, with exactly these arguments."""
    # sbatch refuses carriage returns before line feeds, as of a file from DOS: the quotes between
    # them separate the two bytes, and no more.
    words = [shlex.quote(word).replace("\r\n", "\r''\n") for word in command]
    return b"#!/bin/sh\nexec " + os.fsencode(" ".join(words)) + b"\n"


def _sbatch_options(options: Namespace, before: Sequence[str]) -> Iterator[str]:
    yield "--parsable"
    name = options.name or plain(os.path.basename(options.command[0]))
    if name:
        yield f"--job-name={name}"
    yield "--ntasks=1"
    if options.cpus:
        yield f"--cpus-per-task={options.cpus}"
    if options.mem:
        yield f"--mem={options.mem}"
    if options.gpus:
        yield f"--gpus={options.gpus}"
    if options.time:
        yield f"--time={show_duration(options.time)}"
    if options.account:
        yield f"--account={options.account}"
    if before:
        yield f"--dependency=afterany:{':'.join(before)}"


def _limit(text: str) -> int:
    """Return the seconds of a time limit."""
    number, unit = text[:-1], _UNITS.get(text[-1:])
    if unit and number.isascii() and number.isdigit() and 0 < int(number[:7]) == int(number):
        return int(number) * unit
    try:
        return parse_duration(text)
    except InvalidInput as bad:
        raise ArgumentTypeError(f"{bad.message}: write 30m, 2h, 1d, or h:mm:ss") from None


def _quote(context: Context, manager: Manager, job: JobInfo) -> Row | None:
    """Return the bank's quote for a job; None without a bank, or without its answer."""
    if job.account is None or job.limit is None:
        return None
    request = {
        "account": job.account,
        "partition": job.partition,
        "tres": job.tres,
        "time_limit": job.limit,
        "waiting": True,
    }
    try:
        return manager.quote(context, request)
    except FairbankError as error:
        context.detail(f"the bank tells no price: {error.message}")
        return None


def _facts(context: Context, job: JobInfo, quote: Row | None) -> Iterator[str]:
    """Yield what the job has, and what it holds."""
    yield counted(job.cpus, "CPU")
    for kind, _, count in (item.partition("=") for item in job.tres.split(",")):
        if kind == "gres/gpu":
            yield counted(int(count), "GPU")
    yield "no limit" if job.limit is None else _length(job.limit)
    if quote is not None:
        form = context.format.for_sentences
        amount = form.su_text(quote["amount"])
        left = f", of which {job.account} has {form.su_text(quote['available'])}"
        yield f"holds {amount}" if quote["fits"] else f"needs {amount}{left}"


def _when(
    context: Context, job: JobInfo, quote: Row | None, start: int | None, before: Sequence[str]
) -> str:
    """Return when the job starts, as far as that is known.

    Args:
        context: the command.
        job: the job, a moment after its submission.
        quote: that of the bank, if there is one.
        start: when it would start if all jobs took as long as they may.
        before: the jobs whose ends it waits for.
    """
    if quote is not None and not quote["fits"]:
        return f"waits for credit: fairbank why {job.name}"
    if before:
        return f"starts after {'jobs' if before[1:] else 'job'} {', '.join(before)}"
    left = None if start is None else start - context.now()
    if job.state != "PENDING" or (left is not None and left <= 1):
        return "starts now"
    return "waits" if left is None else f"starts in {show_rounded(left)} at the latest"


def _length(seconds: int) -> str:
    for unit, name in ((_HOUR, "h"), (MINUTE, "min")):
        if seconds % unit == 0:
            return f"{seconds // unit:,} {name}"
    return show_duration(seconds)


COMMAND = host_command(
    "run a command as a job",
    (
        "{} -- python train.py",
        "{} -c 4 --mem 8G -t 2h -A chem_qmc -- ./simulate input.dat",
        "{} --wait -- make test && echo tested",
    ),
    _add,
    _run,
)
