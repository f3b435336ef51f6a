"""Command of salloc: a process group of its own, which has the terminal while salloc waits."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from fairbank.wlm.commands.steps.ending_signals import ENDING, handled_signals, interrupt
from fairbank.wlm.commands.steps.task_ends import exit_code

_OF_COMMAND = signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2
"""Signals that salloc leaves to its command."""
_OF_TERMINAL = signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU


def run_command(name: str, words: list[str], environment: dict[str, str]) -> int:
    """Run the command of salloc, or a shell, and return its exit code.

    Signals of the terminal are for the command. SIGTERM is forwarded to it and its children, and
    SIGHUP too, which ends this wait, as in Slurm.
    """
    own = {**os.environ, **environment}
    command = words or [os.environ.get("SHELL") or "/bin/sh"]
    has_terminal = _foreground() == os.getpgrp()
    # Until both processes have their handlers.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
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
    group = _CommandGroup(pid, has_terminal=has_terminal)
    with (
        handled_signals(_OF_COMMAND, signal.SIG_IGN),
        handled_signals((signal.SIGTERM, signal.SIGHUP), group.forward),
        handled_signals((signal.SIGCONT,), group.resume),
    ):
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return exit_code(group.wait())


class _CommandGroup:
    """Process group of a command.

    Invariant: it `_has_terminal` since this process gave it, which must take it back.
    """

    def __init__(self, pid: int, *, has_terminal: bool) -> None:
        """Follow the group of a child."""
        self._pid, self._has_terminal = pid, has_terminal

    def wait(self) -> int:
        """Wait for the end of the command, and return its status."""
        try:
            while os.WIFSTOPPED(status := os.waitpid(self._pid, os.WUNTRACED)[1]):
                if os.WSTOPSIG(status) in _OF_TERMINAL and _foreground() is not None:
                    self._stop_with(os.WSTOPSIG(status))
            return status
        finally:
            self._take_terminal()

    def forward(self, number: int, _: object) -> None:
        """Send a signal to the group."""
        self._send(number)
        if number == signal.SIGHUP:
            interrupt(number)

    def resume(self, *_: object) -> None:
        """Continue the group as the shell continues this process: in the foreground or not."""
        foreground = _foreground()
        if foreground is None:
            return
        self._has_terminal = foreground in (os.getpgrp(), self._pid)
        if self._has_terminal:
            _set_foreground(self._pid)
        self._send(signal.SIGCONT)

    def _stop_with(self, number: int) -> None:
        """Stop this process as its command was, so that the shell before it notices."""
        self._take_terminal()
        os.killpg(0, number)
        # Without a shell that would continue it, the kernel stops no process of this group.
        if _foreground() == os.getpgrp():
            self.resume()

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):  # it has just ended
            os.killpg(self._pid, number)

    def _take_terminal(self) -> None:
        if self._has_terminal:
            _set_foreground(os.getpgrp())
        self._has_terminal = False


def _foreground() -> int | None:
    """Return the foreground group of the terminal; None if standard input is no such terminal."""
    try:
        return os.tcgetpgrp(0)
    except OSError:
        return None


def _set_foreground(group: int) -> None:
    """Give the terminal to a process group."""
    # Else a process in the background is stopped.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTTOU,))
    with suppress(OSError):  # the terminal has disappeared
        os.tcsetpgrp(0, group)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
