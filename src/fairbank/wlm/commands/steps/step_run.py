"""Running step as srun follows it: output, input, signals and the ends of its tasks."""

import os
import select
import selectors
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

from fairbank.core.errors import FairbankError, Unavailable
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.client.step_stream import INPUT_WINDOW, StepStream, exit_status, missed_output
from fairbank.wlm.commands.steps.background import Escapes, leave_terminal
from fairbank.wlm.commands.steps.ending_signals import handled_signals
from fairbank.wlm.commands.steps.step_output import StepOutput
from fairbank.wlm.commands.steps.task_ends import end_text, exit_code, tasks_text
from fairbank.wlm.commands.steps.terminal import terminal_size
from fairbank.wlm.protocol import frames
from fairbank.wlm.protocol.frames import Frame

_FORWARDED = tuple(getattr(signal, f"SIG{name}") for name in "HUP QUIT TERM USR1 USR2 CONT".split())
_ABORT_SECONDS = 1.0  # within which a second Ctrl-C is sent to the tasks
_CHUNK = 32 * 1024
_ENDING = signal.SIGTERM, signal.SIGKILL
"""Signals of which Slurm says that a step was ended by force."""

T = TypeVar("T")


class StepOptions(NamedTuple):
    """Options of srun about the ends of tasks and its terminal.

    `kills_on_failure`: the first task that fails ends the others (-K). `wait_seconds` after the
    first end of a task the others are ended (-W); 0: never. None: as the
    cluster has set. `has_terminal`: --pty. `name` is that
    of the command: sattach forwards no signals and tells no exits. `is_attached`: the step is that
    of another srun, and goes on without this process.
    """

    name: str = "srun"
    is_attached: bool = False
    kills_on_failure: bool | None = False
    wait_seconds: int | None = 0
    has_terminal: bool = False
    is_quiet: bool = False


class StepRun:
    """Step that runs, until all of its tasks have ended.

    Invariants: `_running` are the ranks of the tasks that have not ended, `_failed` those of tasks
    that have failed. `_exits` have the ends that are not printed yet, with their node and status.
    `_code` is the highest exit code. `_was_forced`: a signal that ends steps has ended a task.
    `_is_asking`: the controller has not answered a request. `_is_controller_lost`: it could not be
    asked whether the step has ended, which is printed once. `_ended` says how it has ended, as soon
    as the controller has said it.
    """

    def __init__(
        self,
        controller: Controller,
        step: requests.StartedStep,
        output: StepOutput,
        stdin: int | None,
        options: StepOptions,
    ) -> None:
        """Begin to follow a step. `stdin` is the descriptor with its input; None: it has none."""
        self._controller, self._step, self._output = controller, step, output
        self._stdin, self._options = stdin, options
        is_interactive = stdin is not None and options.name == "srun" and os.isatty(stdin)
        self._escapes = Escapes() if is_interactive else None
        self._terminals = [number for number in range(3) if os.isatty(number)]
        self._running = {rank for node in step.nodes for rank in node.ranks}
        self._tasks = len(self._running)
        self._exits: dict[tuple[str, int], list[int]] = {}
        self._failed: set[int] = set()
        self._was_forced = False
        self._code = 0
        self._ends_at: float | None = None
        self._interrupted_at = -_ABORT_SECONDS
        self._interrupts = 0
        self._is_ending = self._is_killing = self._is_asking = False
        self._is_controller_lost = False
        self._ended: Unavailable | None = None
        self._selector = selectors.PollSelector()  # epoll takes no files
        self._wakeup, self._wakeup_end = os.pipe()
        for end in (self._wakeup, self._wakeup_end):
            os.set_blocking(end, False)
        self._streams: list[StepStream] = []

    def follow(self, origin: str = "own") -> int:
        """Follow the step to its end, and return srun's exit code. `origin` is as in StepStream.

        Raises:
            OSError: the output cannot be written.
            KeyboardInterrupt: a signal came before it could be forwarded.
        """
        self._connect(origin)
        self._selector.register(self._wakeup, selectors.EVENT_READ, self._take_signals)
        forwarded = (signal.SIGINT, *_FORWARDED) if self._options.name == "srun" else ()
        signal.set_wakeup_fd(self._wakeup_end, warn_on_full_buffer=False)
        try:
            numbers = (signal.SIGWINCH, *forwarded)
            with handled_signals(numbers, self._break_request, also_ignored=True):
                for stream in self._streams:  # what came while they connected
                    self._receive(stream)
                self._serve_all()
        finally:
            signal.set_wakeup_fd(-1)
        self._tell_exits()
        if self._was_forced and not self._is_killing:
            self._say(f"Force Terminated {self._step}")
        return self._code

    def _connect(self, origin: str) -> None:
        """Connect to the nodes as soon as their step daemons listen.

        One that attaches leaves out nodes whose tasks have ended and have no more output.
        """
        wants_input = self._stdin is not None
        for node in self._step.nodes:
            check = partial(self._check, node)
            try:
                stream = StepStream(node, origin, wants_input=wants_input, check=check)
            except Unavailable:
                if not self._options.is_attached:
                    raise
                self._running.difference_update(node.ranks)
                continue
            # The nodes have the same one, also if two attach at once.
            wants_input = stream.has_input
            self._streams.append(stream)
        if not self._streams:
            raise self._ended or Unavailable(f"{self._step} has ended", remedy="sacct shows it")
        if os.isatty(0):  # it may have changed while srun waited
            self.send_size()
        if self._stdin is not None and not wants_input:
            self._say(f"{self._step} gets its input from another srun, or has had it all")

    def _serve_all(self) -> None:
        """Take what comes from the nodes, until everything has come."""
        while any(not stream.is_finished for stream in self._streams):
            self._watch()
            for key, _ in self._selector.select(self._pause()):
                key.data(key.fileobj)
            self._tell_exits()
            self._end_in_time()

    def _check(self, node: requests.StepNode) -> None:
        """Raise Unavailable if the tasks of a node have ended: nothing will begin to listen there.

        The exit code is that of the tasks which this process does not see end, too.
        """
        if self._ended is not None:
            raise self._ended
        try:
            known = requests.find_step(self._controller, str(self._step.job), self._step.step)
        except Unavailable as error:  # the step goes on without the controller
            if not self._is_controller_lost:
                self._print(f"{error.message}; retrying")
            self._is_controller_lost = True
            return
        self._code = max(self._code, exit_code(known.status))
        if known.state != "RUNNING":
            text = f"{self._step} has ended: {known.state}"
            self._ended = Unavailable(text, remedy="sacct shows it")
            raise self._ended
        if not any(one.is_running for one in known.step.nodes if one.node == node.node):
            text = f"the tasks of {self._step} on node {node.node} have ended"
            raise Unavailable(text, remedy="sacct shows how, when the step has ended")

    # ------------------------------------------------------------------ what comes

    def _watch(self) -> None:
        """Wait for what can come, or go, now."""
        for stream in self._streams:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if stream.unsent else 0)
            self._register(stream.socket, 0 if stream.is_finished else events, self._serve)
        if self._stdin is not None:
            # A node that has finished says no more what its tasks have taken.
            takers = [one for one in self._streams if one.has_input and not one.is_finished]
            is_open = all(stream.open_input + _CHUNK <= INPUT_WINDOW for stream in takers)
            events = selectors.EVENT_READ if takers and is_open else 0
            self._register(self._stdin, events, self._read_input)

    def _register(self, file: object, events: int, handler: object) -> None:
        known = self._selector.get_map().get(file)  # type: ignore[call-overload]
        if known is not None and known.events != events:
            self._selector.unregister(file)  # type: ignore[arg-type]
            known = None
        if known is None and events:
            self._selector.register(file, events, handler)  # type: ignore[arg-type]

    def _serve(self, connection: object) -> None:
        stream = next(one for one in self._streams if one.socket is connection)
        stream.flush()
        self._receive(stream)

    def _receive(self, stream: StepStream) -> None:
        for frame in stream.receive():
            if frame.kind in (frames.OUTPUT, frames.ERRORS):
                count = self._output.write(frame.kind, frame.number, frame.body)
                stream.note_written(frame, count)
            elif frame.kind == frames.MISSED:
                self._note_missed(stream, frame)
            elif frame.kind == frames.EXITED:
                self._note_exit(stream.node.node, frame)
        stream.tell_written()

    def _note_missed(self, stream: StepStream, frame: Frame) -> None:
        """Say that output is missing here, behind what has come of its line."""
        kind, count = missed_output(frame)
        written = self._output.write(kind, frame.number, b"")
        stream.note_missed(kind, frame.number, written + count)
        what = f"{count} bytes of the output of task {frame.number} are missing here"
        self._print(f"error: {what}: {self._options.name} was too slow or stopped")

    def _read_input(self, _: object) -> None:
        assert self._stdin is not None  # noqa: S101 - only then is it called
        try:
            data = os.read(self._stdin, _CHUNK)
        except BlockingIOError:
            return
        except OSError:  # of a terminal, also if this process is in the background
            data = b""
        if not data:
            self._note_hang_up()
        if data and self._escapes is not None:
            data, is_leaving = self._escapes.read(data)
            self._send_input(data)
            if not (is_leaving and self._leave()):
                return
        else:
            self._send_input(data)
            if data:
                return
        self._register(self._stdin, 0, None)
        self._stdin = None

    def _leave(self) -> bool:
        """Go on in the background. Return False if that is not possible."""
        try:
            options = " --pty" if self._options.has_terminal else ""
            leave_terminal(self._step, options, self._take_over)
        except OSError as error:
            self._print(f"error: cannot go to the background: {error.strerror}")
            return False
        self._options = self._options._replace(has_terminal=False)
        self._terminals.clear()
        return True

    def _take_over(self) -> None:
        """Own the job, and end the input, before the process with the terminal ends.

        The next srun that attaches may have the input then.
        """
        self._ask(lambda: requests.own(self._controller, self._step.job))
        self._send_input(b"")

    def _send_input(self, data: bytes) -> None:
        for stream in self._streams:
            if stream.has_input and not stream.is_finished:
                stream.send(frames.INPUT, 0, data)

    # ------------------------------------------------------------------ ends of tasks

    def _note_exit(self, node: str, frame: Frame) -> None:
        status = exit_status(frame)
        self._running.discard(frame.number)
        if status:
            self._failed.add(frame.number)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in _ENDING:
            self._was_forced = self._options.name == "srun"
        self._exits.setdefault((node, status), []).append(frame.number)
        self._code = max(self._code, exit_code(status))

    def _tell_exits(self) -> None:
        """Print how tasks have ended, as Slurm does, and end the others if the options say so."""
        exits, self._exits = self._exits, {}
        for (node, status), ranks in exits.items():
            if status and self._options.name == "srun":
                self._print(f"error: {node}: {tasks_text(ranks)}: {end_text(status)}")
        if not self._running or not exits:
            return
        self._complete_options()
        if self._options.kills_on_failure and any(status for _, status in exits):
            self._end(f"Terminating {self._step}")
        elif self._options.wait_seconds and self._ends_at is None:
            self._ends_at = time.monotonic() + self._options.wait_seconds

    def _complete_options(self) -> None:
        """Take what no option says from the settings of the cluster."""
        kills, seconds = self._options.kills_on_failure, self._options.wait_seconds
        if kills is not None and seconds is not None:
            return
        try:
            settings = self._ask(lambda: requests.settings(self._controller))
        except FairbankError:
            return  # at the next end of a task
        if kills is None:
            kills = settings["KillOnBadExit"] == "1"
        if seconds is None:
            seconds = int(settings["WaitTime"].split()[0])
        self._options = self._options._replace(kills_on_failure=kills, wait_seconds=seconds)

    def _end_in_time(self) -> None:
        if self._ends_at is not None and time.monotonic() >= self._ends_at and self._running:
            self._ends_at = None
            self._say(f"First task exited {self._options.wait_seconds}s ago")
            self._print_state()
            self._end(f"Terminating {self._step}", signal.SIGKILL)

    def _pause(self) -> float | None:
        return None if self._ends_at is None else max(self._ends_at - time.monotonic(), 0)

    def _end(self, text: str, number: int = 0) -> None:
        """End the step, and print a text; with the signal SIGKILL at once.

        If the controller does not answer, the tasks get the signal alone.
        """
        if self._is_killing or (self._is_ending and not number):
            return
        self._is_ending, self._is_killing = True, number == signal.SIGKILL
        self._say(text)
        try:
            self._ask(lambda: requests.end_step(self._controller, self._step, number))
            if self._is_killing:
                settings = self._ask(lambda: requests.settings(self._controller))
                seconds = int(settings["KillWait"].split()[0]) + 2
                what = f"Waiting up to {seconds} seconds for job step to finish."
                self._say(f"Job step aborted: {what}")
        except Unavailable as error:
            self._print(f"error: {error.message}")
            self._send(number or signal.SIGTERM)
        except FairbankError as error:
            self._print(f"error: {error.message}")

    # ------------------------------------------------------------------ signals

    def _ask(self, request: Callable[[], T]) -> T:
        """Make a request to the controller. A signal ends the wait for its answer."""
        self._is_asking = True
        while select.select([self._wakeup], [], [], 0)[0]:  # it came before
            self._is_asking = False
            self._take_signals()
            self._is_asking = True
        try:
            return request()
        finally:
            self._is_asking = False

    def _break_request(self, number: int, _: object) -> None:
        """Handle a signal. Its number is in `_wakeup`."""
        if self._is_asking and number not in (signal.SIGWINCH, signal.SIGCONT):
            self._is_asking = False
            raise Unavailable("the controller did not answer before a signal came")

    def _take_signals(self, _: object = None) -> None:
        for number in os.read(self._wakeup, 64):
            if number == signal.SIGINT:
                self._interrupt()
            elif number == signal.SIGWINCH:
                self.send_size()
            elif number in _FORWARDED and number != signal.SIGCONT:
                if number == signal.SIGHUP:
                    self._note_hang_up()
                self._send(number)

    def _note_hang_up(self) -> None:
        """End an own step if the terminal has gone; that of another srun goes on without us."""
        if all(os.isatty(number) for number in self._terminals):
            return
        if self._options.is_attached:
            raise KeyboardInterrupt(signal.SIGHUP)
        self._end(f"Terminating {self._step}")

    def _interrupt(self) -> None:
        """Ctrl-C: first the state of the tasks; within a second SIGINT to them; then SIGKILL."""
        now = time.monotonic()
        is_early, self._interrupted_at = now - self._interrupted_at < _ABORT_SECONDS, now
        self._interrupts = self._interrupts + 1 if is_early else 1
        if self._interrupts == 1:
            self._say("interrupt (one more within 1 sec to abort)")
            self._print_state()
        elif self._interrupts == 2:
            self._say(f"sending Ctrl-C to {self._step}")
            self._send(signal.SIGINT)
        else:
            self._end("forcing job termination", signal.SIGKILL)

    def _send(self, number: int) -> None:
        for stream in self._streams:
            if not stream.is_finished:
                stream.send(frames.SIGNAL, number)

    def send_size(self) -> None:
        """Tell the step the size of the terminal."""
        if self._options.has_terminal and self._streams:
            self._streams[0].send(frames.WINDOW_SIZE, 0, frames.SIZE.pack(*terminal_size()))

    def _print_state(self) -> None:
        ended = set(range(self._tasks)) - self._running - self._failed
        states = {"running": self._running, "exited abnormally": self._failed, "exited": ended}
        for word, ranks in states.items():
            if ranks:
                self._say(f"{self._step} {tasks_text(ranks)}: {word}")

    def _say(self, text: str) -> None:
        """Print what is no error, unless srun is quiet."""
        if not self._options.is_quiet:
            self._print(text)

    def _print(self, text: str) -> None:
        line_end = "\r\n" if self._options.has_terminal else "\n"
        print(f"{self._options.name}: {text}", end=line_end, file=sys.stderr, flush=True)
