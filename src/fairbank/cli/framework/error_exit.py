"""End of a command: error on stderr, exit code; a traceback only with FAIRBANK_DEBUG=1.

With --json the error is also a problem document on stdout (RFC 9457), as the bank's routes give it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, cast

from fairbank.cli.framework.exit_codes import DONE, INTERRUPTED, NOT_DONE, exit_of_refusal
from fairbank.cli.framework.screen import Shown, terminal_width
from fairbank.core.errors import FairbankError, Unavailable
from fairbank.core.os_errors import translate_os_error
from fairbank.core.units import show_su, with_texts
from fairbank.report.cells import folded, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairbank.rest.client import Refused


def run_to_exit(command: Callable[[], int], words: Sequence[str], program: str = "fairbank") -> int:
    """Run a command, print its error if it fails, and return the exit code.

    Args:
        command: the function that runs it.
        words: its arguments as typed.
        program: its name.
    """
    if not _has_output():
        return _print_lines(_CLOSED_OUTPUT, NOT_DONE, program)
    _be_lenient()
    # The error may be in the options themselves, so they are not parsed here.
    print_error = partial(
        _print_error, program=program, as_json="--json" in words, utc="--utc" in words
    )
    try:
        try:
            code = command()
        except Shown as text:
            sys.stdout.write(str(text))
            code = DONE
        sys.stdout.flush()
    except BrokenPipeError:
        _close_quietly()
        return DONE  # the reader closed the pipe
    except KeyboardInterrupt:
        return INTERRUPTED
    except FairbankError as error:
        return print_error(error, exit_code(error))
    except OSError as error:
        # An error without a file name concerns the output.
        name = error.filename
        action = f"cannot use {name}" if name else "the output cannot be written"
        return print_error(translate_os_error(error, action), NOT_DONE)
    except Exception as bug:  # noqa: BLE001  the outermost handler: print one sentence
        failure = _error_of_missing_library(bug) or _error_of_bug(bug)
        return print_error(failure, failure.exit_code)
    return code


def exit_code(error: FairbankError) -> int:
    """Return the exit code for a refusal or an error."""
    return exit_of_refusal(cast("Refused", error).status) if _is_refusal(error) else error.exit_code


def error_lines(error: FairbankError, *, utc: bool) -> list[str]:
    """Return message, field and remedy, for a refusal all its details; then the bank that answered:
    perhaps another was meant.
    """
    bank = [] if error.bank is None else [f"  bank: {plain(error.bank)}"]
    if _is_refusal(error):
        return [*refusal_lines(cast("Refused", error), utc=utc), *bank]
    lines = [plain(_in_zone(error.message, utc=utc))]
    if error.field:
        lines.append(f"  field: {plain(error.field)}")
    if error.remedy:
        lines.append(f"  try: {plain(_in_zone(error.remedy, utc=utc))}")
    return [*lines, *bank]


def _in_zone(sentence: str, *, utc: bool) -> str:
    """Return a sentence with its times in the user's zone, as in tables, or with `utc` in UTC."""
    from fairbank.cli.framework.host import Local
    from fairbank.report.columns import DisplayFormat  # as in `problem_document`

    return DisplayFormat(zone=UTC if utc else Local()).sentence(sentence)


def _is_refusal(error: FairbankError) -> bool:
    """Return whether it is `rest.client.Refused`, which help does not import."""
    return "refusal" in vars(error)


def refusal_lines(refused: Refused, *, utc: bool) -> list[str]:
    """Return the refusal: requested, available, shortfall, and each remedy.

    Times are in the user's zone, as in tables, or with `utc` in UTC.
    """
    from fairbank.cli.framework.host import with_user_names  # as in `problem_document`

    message, *remedies = (
        plain(with_user_names(_in_zone(text, utc=utc)))
        for text in (refused.message, *refused.remedies)
    )
    lines = [f"refused: {message}"]
    details = refused.refusal
    # Where the bank looked for credit, its message has the amounts.
    if details.get("requested") and details.get("available") is None:
        lines.append(f"  requested {show_su(int(details['requested']))} SU")
    if details.get("allocation"):
        lines.append(f"  allocation: {details['allocation']}")
    lines += [
        f"  {'try' if place == 0 else 'or'}: {remedy}" for place, remedy in enumerate(remedies)
    ]
    # A job's refusal; others are in no list.
    if details.get("entry") and details.get("run") and details.get("owner") is not None:
        from fairbank.cluster.job import Run  # as above, only for refusals

        # The number lists it also where the job is that of another user.
        job = Run.parse(str(details["run"])).job_id
        lines.append(f"  kept as refusal {details['entry']}: fairbank jobs --refused -j {job}")
    return lines


def problem_document(error: FairbankError) -> dict[str, object]:
    """Return the problem document of an error or a refusal."""
    from fairbank.report.columns import (  # these take 6 ms, and help has no errors
        UNITS,
        DisplayFormat,
    )

    title, remedy = error.title, error.remedy
    details: dict[str, object] = {}
    if _is_refusal(error):
        refused = cast("Refused", error)
        title, remedy = "refused", next(iter(refused.remedies), None)
        details = {
            "amounts_in": UNITS["m"],
            "refusal": with_texts(refused.refusal, DisplayFormat().amounts),
        }
    fields = {"detail": error.message, "field": error.field, "remedy": remedy, "bank": error.bank}
    return {
        "type": f"/problem/{title.replace(' ', '-')}",
        "title": title,
        "status": error.status,
        **{name: value for name, value in fields.items() if value is not None},
        **details,
    }


def _error_of_bug(bug: Exception) -> FairbankError:
    if os.environ.get("FAIRBANK_DEBUG"):
        import traceback  # only bugs need it

        lines = "".join(traceback.format_exception(bug)).splitlines()
        print(*map(plain, lines), sep="\n", file=sys.stderr)
    return FairbankError(
        f"this should not have happened: {type(bug).__name__}: {bug}"[:200],
        remedy="the same with FAIRBANK_DEBUG=1, and report what it prints",
    )


def _error_of_missing_library(error: Exception) -> FairbankError | None:
    """Return the error of a command of the bank's host where only the client is installed.

    None for other errors. A module that Fairbank or Python itself lacks is a broken installation,
    and the libraries of the bank would not help.
    """
    if not isinstance(error, ModuleNotFoundError):
        return None
    library = (error.name or "").partition(".")[0]
    if library == "fairbank" or library in sys.stdlib_module_names:
        return None
    return Unavailable(
        f"this command needs {library or 'a library'}, which is not installed here",
        remedy="on the bank's host, or after an installation of fairbank[server]",
    )


def _print_error(error: FairbankError, code: int, program: str, *, as_json: bool, utc: bool) -> int:
    if as_json:
        from fairbank.report.tables import as_json as text_of  # as in `problem_document`

        with suppress(OSError):  # the lines below tell the same
            print(text_of(problem_document(error)), flush=True)
    return _print_lines(error_lines(error, utc=utc), code, program)


def _print_lines(lines: list[str], code: int, program: str) -> int:
    try:
        sys.stdout.flush()
        columns = terminal_width()
        for line in [f"{program}: {lines[0]}", *lines[1:]]:
            print(*folded(line, columns), sep="\n", file=sys.stderr, flush=True)
    except OSError:
        _close_quietly()
    return code


_CLOSED_OUTPUT = ["standard output is closed", "  try: redirect it to /dev/null instead"]


def _has_output() -> bool:
    """Open closed standard streams on /dev/null, and return whether standard output was open.

    Otherwise the next file that is opened, such as a database, would get the descriptor of a
    standard stream, and Python's stream would be None.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest free one
        pass
    os.close(descriptor)
    had_output = sys.stdout is not None
    sys.stdin = sys.stdin or open(0, encoding="utf-8")  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8")  # noqa: SIM115
    return had_output


def _be_lenient() -> None:
    """Print characters that the terminal's encoding lacks as escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _close_quietly() -> None:
    """Send Python's last flush to /dev/null: the reader of the pipe is gone."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # no real stream, as under a test
        return
