"""Steps of the embedded workload manager beside those of a real Slurm, alone and with Fairbank, and
`fairbank run`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from statistics import median

import msgspec

from benchmarks.cluster import ALONE, BESIDE, place_of
from benchmarks.clusters import HERE, NODES, Shell, running_cluster, slurm_shell
from benchmarks.measure import Figure, Say, Table, Target, at_most, ratio
from tests.support.server import FAIRBANK

SLURM, WITH_BANK = f"Slurm {ALONE}", f"Slurm {BESIDE}"
TASKS, AT_ONCE = 64, 4
STREAM_MB = 100
TIMED = """
timed() {
    local begun=$EPOCHREALTIME
    "$@" > /dev/null 2>&1 || echo failed
    echo $begun $EPOCHREALTIME
}
"""
STEPS = """
timed salloc -N 1 -n {at_once} -t 10 bash -c \
    'seq {steps} | xargs -P {at_once} -I{{}} srun -n 1 --exact true'
"""
WRITER = """
import os, time
block, begun = b"x" * 999_999 + b"\\n", time.monotonic()
for number in range({blocks}):
    time.sleep(max(0, begun + number / {per_second} - time.monotonic()))
    view = memoryview(block)
    while view:
        view = view[os.write(1, view):]
"""
STREAM = f"""
TIMEFORMAT='%R %U %S'
{{{{ time srun -t 10 /usr/bin/python3 -S -c '{WRITER}' 2> /dev/null | cat > stream; }}}} 2>&1
wc -c < stream; rm stream
"""

READERS, RATE_SECONDS = 10, 3
RATED = f"""
import os, time
block = b"x" * 999_999 + b"\\n"
while not os.path.exists("go"):
    os.write(1, b"ready\\n")
    time.sleep(0.05)
begun, written = time.monotonic(), 0
while time.monotonic() < begun + {RATE_SECONDS}:
    written += os.write(1, block)
with open("rate", "w") as file:
    print(written / 1e6 / {RATE_SECONDS}, file=file)
"""
ATTACHED = f"""
rm -f go rate seen*
srun -t 10 -J rated /usr/bin/python3 -S -c '{RATED}' > /dev/null 2>&1 & writer=$!
until job=$(squeue -h -t R -n rated -o %i) && [ "$job" ]; do sleep 0.05; done
until [ "$(squeue -h -s -j $job)" ]; do sleep 0.05; done  # a job starts before its step
pids=
for i in $(seq $READERS); do sattach $job.0 > seen$i 2>&1 & pids="$pids $!"; done
for i in $(seq $READERS); do until grep -q ready seen$i; do sleep 0.05; done; done
[ -z "$pids" ] || kill -STOP $pids
touch go
wait $writer
[ -z "$pids" ] || kill -KILL $pids
cat rate
"""

REMARK = """
In "Workload manager: steps", `srun true` starts Python and has a fork of the fork server, as every
command does; `sbatch --help` in "Workload manager: commands" shows how long that takes. Then the
bank is asked and two step daemons start. Slurm with Fairbank waits for the bank too.
"""
ABOUT = (
    "The cluster of `make test-slurm` with 16 nodes, with and without Fairbank's plug-in, agent and"
    " bank; and `fairbank cluster up` with 16 virtual nodes and its bank, on the same machine. All"
    " commands are run by loops of bash. `srun true`: median of {sruns} in sequence, each a job of"
    " its own. Steps in one job: {steps} `srun true` by xargs, 4 at a time. Tasks: `srun -N 16 -n"
    " 64 hostname`. {stream} MB of one task that writes 100 MB/s, through srun into a file: what"
    " arrives is counted, and the processor time is that of srun and the `cat` behind it."
)


class Scale(msgspec.Struct, frozen=True):
    rounds: int
    sruns: int
    steps: int
    stream: int  # MB


LONG, SHORT = Scale(3, 30, 500, 400), Scale(1, 5, 40, 100)


class _Round(msgspec.Struct, frozen=True):
    """Measurements of one contender in one round."""

    srun_ms: float
    steps_rate: float
    tasks_ms: float
    stream_seconds: float
    stream_cpu: float


def measure(*, short: bool, say: Say) -> list[Table]:
    """Measure all. Raises tests.slurm.lab.packages.Unobtainable where Slurm cannot be installed."""
    scale = SHORT if short else LONG
    rounds: dict[str, list[_Round]] = {HERE: [], WITH_BANK: [], SLURM: []}
    with running_cluster(say, "--cpus", str(TASKS)) as (cluster, _), place_of("wide") as place:
        for number in range(scale.rounds):
            for name, contender in ((HERE, ""), (WITH_BANK, BESIDE), (SLURM, ALONE)):
                say(f"{name}; round {number + 1} of {scale.rounds}")
                if contender:
                    place.turn(contender)
                shell = slurm_shell(place.slurm) if contender else cluster.shell
                rounds[name].append(_round(shell, scale))
        say(f"a task with {READERS} stopped readers")
        attached = _attached(cluster.shell, scale)
        submission = _submission(cluster.shell, scale)
    return [_steps_table(rounds, scale, short=short), attached, submission]


def _round(shell: Shell, scale: Scale) -> _Round:
    (steps,) = _times(shell(TIMED + STEPS.format(steps=scale.steps, at_once=AT_ONCE)))
    script = STREAM.format(blocks=scale.stream, per_second=STREAM_MB)
    stream, written = shell(script).splitlines()
    if int(written) != scale.stream * 10**6:
        raise RuntimeError(f"{written} bytes of the stream have arrived")
    seconds, user, system = map(float, stream.split())
    return _Round(
        median(repeated(shell, "srun -t 10 true", scale.sruns)),
        scale.steps / (steps / 1_000),
        median(repeated(shell, f"srun -N {NODES} -n {TASKS} -t 10 hostname", 5)),
        seconds,
        user + system,
    )


def repeated(shell: Shell, command: str, times: int) -> list[float]:
    """Return the milliseconds of each of these runs of a command, one after the other."""
    return _times(shell(f"{TIMED}for i in $(seq {times}); do timed {command}; done"))


def _times(output: str) -> list[float]:
    """Return the milliseconds that `timed` has printed. Raises ValueError if a command failed."""
    return [
        (float(ended) - float(begun)) * 1_000
        for begun, ended in (line.split() for line in output.splitlines())
    ]


def _steps_table(rounds: Mapping[str, list[_Round]], scale: Scale, *, short: bool) -> Table:
    def figure(name: str, what: str, unit: str, field: str) -> Figure:
        values = tuple(getattr(one, field) for one in rounds[name])
        return Figure(f"{what}, {name}", unit, values)

    rows = (
        ("`srun true`", "ms", "srun_ms"),
        ("steps in one job", "steps/s", "steps_rate"),
        (f"{TASKS} tasks of `hostname`", "ms", "tasks_ms"),
        (f"{scale.stream} MB of one task", "s", "stream_seconds"),
        (f"processor time of {scale.stream} MB", "s", "stream_cpu"),
    )
    figures = {
        (name, row[2]): figure(name, *row) for row in rows for name in (HERE, WITH_BANK, SLURM)
    }

    def beside(what: str, field: str, other: str, bound: float, *, is_most: bool = True) -> Target:
        ours, theirs = figures[HERE, field], figures[other, field]
        return ratio(f"{what} / {other}", ours, theirs, bound, is_most=is_most)

    promises = (
        beside("`srun true`", "srun_ms", WITH_BANK, 1.0),
        beside("`srun true`", "srun_ms", SLURM, 1.5),
        beside("steps in one job", "steps_rate", SLURM, 0.6, is_most=False),
        beside(f"{TASKS} tasks", "tasks_ms", SLURM, 1.5),
    )
    about = ABOUT.format(sruns=scale.sruns, steps=scale.steps, stream=scale.stream)
    title = "Workload manager: steps"
    return Table(title, about, tuple(figures.values()), () if short else promises)


def _attached(shell: Shell, scale: Scale) -> Table:
    """Measure a task that writes as fast as it can, alone and with readers that are stopped."""
    alone, beside = "alone", f"with {READERS} stopped `sattach`"
    rates: dict[str, list[float]] = {alone: [], beside: []}
    for _ in range(scale.rounds):
        rates[alone].append(float(shell(f"READERS=0{ATTACHED}")))
        rates[beside].append(float(shell(f"READERS={READERS}{ATTACHED}")))
    figures = {name: Figure(name, "MB/s", tuple(values)) for name, values in rates.items()}
    about = (
        f"One task writes for {RATE_SECONDS} s, and srun takes it. The readers have attached to the"
        " step before, and are stopped."
    )
    promise = ratio("with stopped readers / alone", figures[beside], figures[alone], 0.95)
    title = "Workload manager: output of a step"
    return Table(title, about, tuple(figures.values()), (promise,))


def _submission(shell: Shell, scale: Scale) -> Table:
    """Measure `fairbank run`, beside task-spooler where that is installed."""
    commands = {"fairbank run -- true": f"{FAIRBANK} run -- true"}
    if tsp := shutil.which("tsp"):
        commands["tsp true"] = f"{tsp} true"
    figures = {
        name: Figure(name, "ms", tuple(repeated(shell, command, scale.sruns)))
        for name, command in commands.items()
    }
    shown = "" if tsp else " task-spooler is not installed here."
    about = f"From the command line to the number of the job, with its price from the bank.{shown}"
    promise = at_most("fairbank run -- true", figures["fairbank run -- true"], 80)
    title = "Workload manager: a job in one line"
    return Table(title, about, tuple(figures.values()), (promise,))
