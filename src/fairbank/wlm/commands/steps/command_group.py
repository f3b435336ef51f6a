"""Command of salloc: a process group of its own, which may have the terminal of salloc."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fairbank.wlm.commands.steps.ending_signals import ENDING, handled_signals, interrupt
from fairbank.wlm.commands.steps.task_ends import exit_code

_TERMINAL = Path("/dev/tty")
"""Controlling terminal, which the command may open also if its standard input is a file."""
_FORWARDED = *ENDING, signal.SIGTSTP
_IGNORED = signal.SIGUSR1, signal.SIGUSR2
"""Signals that salloc leaves to its command."""
_OF_TERMINAL = signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU


def run_command(
    name: str, words: list[str], environment: dict[str, str], begin: Callable[[], None]
) -> int:
    """Run the command of salloc, or a shell, and return its exit code.

    Signals of the terminal are for the command. Those that reach this process are forwarded to it
    and its children. SIGHUP also ends this wait, as in Slurm. `begin` is called when the command
    has its process.
    """
    own = {**os.environ, **environment}
    command = words or [os.environ.get("SHELL") or "/bin/sh"]
    has_terminal = _is_in_foreground() and os.isatty(0)
    # Until both processes have their handlers.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            if has_terminal:
                _set_foreground(os.getpgrp())
            for number in ENDING:
                if signal.getsignal(number) is interrupt:
                    signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.execvpe(command[0], command, own)  # noqa: S606
        except OSError as error:
            text = f'{name}: error: Unable to find command "{command[0]}": {error.strerror}'
            print(text, file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    with suppress(OSError):  # it has done so itself, and executes its command or has ended
        os.setpgid(pid, pid)
    begin()
    group = _CommandGroup(pid, has_terminal=has_terminal)
    with (
        handled_signals(_IGNORED, signal.SIG_IGN),
        handled_signals(_FORWARDED, group.forward),
        handled_signals((signal.SIGCONT,), group.resume),
    ):
        try:
            # A signal that has waited may end this process at once.
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return exit_code(group.wait())
        finally:
            group.take_terminal()


class _CommandGroup:
    """Process group of a command.

    Invariant: `_has_terminal` after this process gave its terminal to the group, until it takes the
    terminal back or a shell has done so.
    """

    def __init__(self, pid: int, *, has_terminal: bool) -> None:
        """Follow the group of a child."""
        self._pid, self._has_terminal = pid, has_terminal
        self._was_resumed = False

    def wait(self) -> int:
        """Wait for the end of the command, and return its status."""
        while os.WIFSTOPPED(status := os.waitpid(self._pid, os.WUNTRACED)[1]):
            number = os.WSTOPSIG(status)
            if number == signal.SIGSTOP and _foreground() == self._pid:
                number = signal.SIGTSTP  # `suspend` of a shell, which leaves the terminal so
            # Without a terminal no shell would continue this process.
            if number not in _OF_TERMINAL or _foreground() is None:
                continue
            if number != signal.SIGTSTP and _is_in_foreground():
                # In a pipeline, another process may be the reader. So give it only on demand.
                self._give_terminal()
                self._send(signal.SIGCONT)
            else:
                self._stop_with(number)
        return status

    def forward(self, number: int, _: object) -> None:
        """Send a signal to the group."""
        self._send(number)
        if number == signal.SIGHUP:
            interrupt(number)

    def resume(self, *_: object) -> None:
        """Continue the group as the shell continues this process: in the foreground or not."""
        self._was_resumed = True
        self._has_terminal = _foreground() == self._pid
        if _is_in_foreground() and os.isatty(0):
            self._give_terminal()
        self._send(signal.SIGCONT)

    def take_terminal(self) -> None:
        """Take the terminal back if the group has it."""
        if self._has_terminal:
            _set_foreground(os.getpgrp())
        self._has_terminal = False

    def _give_terminal(self) -> None:
        _set_foreground(self._pid)
        self._has_terminal = True

    def _stop_with(self, number: int) -> None:
        """Stop this process as its command was, so that the shell before it notices."""
        self.take_terminal()
        self._was_resumed = False
        with handled_signals((signal.SIGTSTP,), signal.SIG_DFL):
            os.killpg(0, number)
        if self._was_resumed:
            return
        # Without a shell that would continue it, the kernel stops no process of this group.
        if number == signal.SIGTSTP:
            self.resume()
        else:
            self.forward(signal.SIGHUP, None)  # the command needs a terminal that it cannot get

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):  # it has just ended
            os.killpg(self._pid, number)


def _foreground() -> int | None:
    """Return the foreground group of the terminal; None without a terminal."""
    try:
        with _TERMINAL.open("rb") as terminal:
            return os.tcgetpgrp(terminal.fileno())
    except OSError:
        return None


def _is_in_foreground() -> bool:
    return _foreground() == os.getpgrp()


def _set_foreground(group: int) -> None:
    """Give the terminal to a process group."""
    # SIGTTOU would stop a process in the background that does so.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTTOU,))
    with suppress(OSError), _TERMINAL.open("rb") as terminal:  # it may have disappeared
        os.tcsetpgrp(terminal.fileno(), group)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
