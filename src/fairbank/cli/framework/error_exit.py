"""End of a command: error on stderr, exit code; a traceback only with FAIRBANK_DEBUG=1."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, cast

from fairbank.cli.framework.exit_codes import DONE, INTERRUPTED, NOT_DONE, exit_of_refusal
from fairbank.cli.framework.screen import Shown, terminal_width
from fairbank.core.errors import FairbankError
from fairbank.core.os_errors import translate_os_error
from fairbank.core.units import show_su
from fairbank.report.cells import folded, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairbank.rest.client import Refused


def run_to_exit(command: Callable[[], int], program: str = "fairbank") -> int:
    """Run a command, print its error if it fails, and return the exit code."""
    if not _has_output():
        return _tell(_CLOSED_OUTPUT, NOT_DONE, program)
    _be_lenient()
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
        return _tell(error_lines(error), exit_code(error), program)
    except OSError as error:
        # An error without a file name concerns the output.
        name = error.filename
        action = f"cannot use {name}" if name else "the output cannot be written"
        return _tell(error_lines(translate_os_error(error, action)), NOT_DONE, program)
    except Exception as bug:  # noqa: BLE001  the outermost handler: print one sentence
        return _tell(_bug_lines(bug), NOT_DONE, program)
    return code


def exit_code(error: FairbankError) -> int:
    """Return the exit code for a refusal or an error."""
    return exit_of_refusal(cast("Refused", error).status) if _is_refusal(error) else error.exit_code


def error_lines(error: FairbankError) -> list[str]:
    """Return message, field and remedy; for a refusal all its details."""
    if _is_refusal(error):
        return refusal_lines(cast("Refused", error))
    lines = [plain(error.message)]
    if error.field:
        lines.append(f"  field: {plain(error.field)}")
    if error.remedy:
        lines.append(f"  try: {plain(error.remedy)}")
    return lines


def _is_refusal(error: FairbankError) -> bool:
    """Return whether it is `rest.client.Refused`, which help does not import."""
    return "refusal" in vars(error)


def refusal_lines(refused: Refused) -> list[str]:
    """Return the refusal: requested, available, shortfall, and each remedy."""
    lines = [f"refused: {plain(refused.message)}"]
    details = refused.refusal
    # Where the bank looked for credit, its message has the amounts.
    if details.get("asked") and details.get("available") is None:
        lines.append(f"  requested {show_su(int(details['asked']))} SU")
    if details.get("allocation"):
        lines.append(f"  allocation: {details['allocation']}")
    lines += [
        f"  {'try' if place == 0 else 'or'}: {plain(remedy)}"
        for place, remedy in enumerate(refused.remedies)
    ]
    # A job's refusal; others are in no list.
    if details.get("entry") and details.get("run") and details.get("owner") is not None:
        lines.append(f"  kept as refusal {details['entry']}: fairbank jobs --refused")
    return lines


def _bug_lines(bug: Exception) -> list[str]:
    if os.environ.get("FAIRBANK_DEBUG"):
        import traceback

        lines = "".join(traceback.format_exception(bug)).splitlines()
        return ["this should not have happened", *map(plain, lines)]
    text = plain(f"{type(bug).__name__}: {bug}")
    return [
        f"this should not have happened: {text[:200]}",
        "  try: the same with FAIRBANK_DEBUG=1, and report what it prints",
    ]


def _tell(lines: list[str], code: int, program: str) -> int:
    try:
        sys.stdout.flush()
        room = terminal_width()
        for line in [f"{program}: {lines[0]}", *lines[1:]]:
            print(*folded(line, room), sep="\n", file=sys.stderr, flush=True)
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
