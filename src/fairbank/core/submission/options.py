"""Options of sbatch, srun and salloc that describe a job, in one table.

Source: sbatch(1), srun(1), salloc(1). A later source wins: default, #SBATCH lines, variables,
command line.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.submission import values as v
from fairbank.core.submission.command_words import TakesValue, read_words

ALL, SUBMITTING = "sbatch srun salloc", "sbatch srun"
ARBITRARY_HOSTS = "SLURM_ARBITRARY_NODELIST"
"""Variable of a job with --distribution=arbitrary: the node of each task."""
_PREFIXES = {"sbatch": ("SBATCH_",), "srun": ("SLURM_", "SRUN_"), "salloc": ("SALLOC_",)}
_ALL_PREFIXES = tuple(chain.from_iterable(_PREFIXES.values()))


class Option(NamedTuple):
    """Option of one or more of the commands.

    letter      its short name, or empty
    commands    those that have it
    variables   of each command without its prefix (ACCOUNT), or in full (SRUN_ERROR)
    reader      of its value; `values.flag` if it takes none
    bare        value that it stands for without one; None: it needs one
    """

    name: str
    letter: str = ""
    commands: str = ALL
    variables: str = ""
    reader: v.Reader = v.as_written
    bare: str | None = None

    @property
    def flag(self) -> str:
        """Its long name, as it is written."""
        return f"--{self.name}"

    def variable_names(self, command: str) -> list[str]:
        """Return the environment variables from which a command takes its value."""
        own = _PREFIXES[command]
        return [
            name if name.startswith(own) else f"{own[0]}{name}"
            for name in self.variables.split()
            if name.startswith(own) or not name.startswith(_ALL_PREFIXES)
        ]


OPTIONS = (
    Option("account", "A", ALL, "ACCOUNT"),
    Option("acctg-freq", "", ALL, "ACCTG_FREQ"),
    Option("allocate", "", "srun", "", v.flag),
    Option("array", "a", "sbatch", "ARRAY_INX", v.array),
    Option("attach", "", "srun"),
    Option("batch", "", "srun", "", v.flag),
    Option("bb", "", ALL, "SLURM_BURST_BUFFER SALLOC_BURST_BUFFER"),
    Option("bbf"),
    Option("bcast", "", "srun", "BCAST", v.as_written, ""),
    Option("begin", "b"),
    Option("bell", "", "salloc", "BELL", v.flag),
    Option("chdir", "D", ALL, "SLURM_REMOTE_CWD SLURM_WORKING_DIR"),
    Option("cluster-constraint"),
    Option("clusters", "M", ALL, "CLUSTERS"),
    Option("comment"),
    Option("constraint", "C", ALL, "CONSTRAINT"),
    Option("container", "", ALL, "SBATCH_CONTAINER SRUN_CONTAINER SALLOC_CONTAINER"),
    Option("container-id", "", ALL, "SBATCH_CONTAINER_ID SRUN_CONTAINER_ID SALLOC_CONTAINER_ID"),
    Option("contiguous", "", ALL, "", v.flag),
    Option("core-spec", "S", ALL, "CORE_SPEC"),
    Option("cores-per-socket"),
    Option("cpu-bind", "", "srun", "SLURM_CPU_BIND", v.cpu_binding),
    Option("cpu-freq", "", ALL, "SLURM_CPU_FREQ_REQ"),
    Option("cpus-per-gpu", "", ALL, "CPUS_PER_GPU", v.count),
    Option("cpus-per-task", "c", ALL, "SRUN_CPUS_PER_TASK SLURM_CPUS_PER_TASK", v.count),
    Option("deadline"),
    Option("delay-boot", "", ALL, "DELAY_BOOT"),
    Option("dependency", "d", ALL, "SLURM_DEPENDENCY", v.dependencies),
    Option("disable-status", "X", "srun", "DISABLE_STATUS", v.flag),
    Option("distribution", "m", ALL, "SBATCH_DISTRIBUTION SLURM_DISTRIBUTION", v.distribution),
    Option("error", "e", SUBMITTING, "SBATCH_ERROR SRUN_ERROR SLURM_STDERRMODE"),
    Option("exact", "", "srun", "EXACT", v.flag),
    Option("exclude", "x"),
    Option("exclusive", "", ALL, "EXCLUSIVE", v.whole_nodes, "exclusive"),
    Option("export", "", SUBMITTING, "SBATCH_EXPORT SLURM_EXPORT_ENV SRUN_EXPORT_ENV"),
    Option("export-file", "", "sbatch"),
    Option("extra"),
    Option("extra-node-info", "B"),
    Option("from-start", "", "srun", "", v.flag),
    Option("get-user-env", "", "sbatch salloc", "SBATCH_GET_USER_ENV", v.as_written, ""),
    Option("gid"),
    Option("gpu-bind", "", ALL, "GPU_BIND", v.gpu_binding),
    Option("gpu-freq", "", ALL, "GPU_FREQ"),
    Option("gpus", "G", ALL, "GPUS", v.gpus),
    Option("gpus-per-node", "", ALL, "GPUS_PER_NODE", v.gpus),
    Option("gpus-per-socket", "", ALL, "", v.gpus),
    Option("gpus-per-task", "", ALL, "GPUS_PER_TASK", v.gpus),
    Option("gres", "", ALL, "GRES", v.gres),
    Option("gres-flags", "", ALL, "GRES_FLAGS"),
    Option("help", "h", ALL, "", v.flag),
    Option("hint", "", ALL, "HINT SLURM_HINT", v.hints),
    Option("hold", "H", ALL, "", v.flag),
    Option("ignore-pbs", "", "sbatch", "IGNORE_PBS", v.flag),
    Option("immediate", "I", "srun salloc", "IMMEDIATE", v.whole, "1"),
    Option("input", "i", SUBMITTING, "SBATCH_INPUT SRUN_INPUT SLURM_STDINMODE"),
    Option("job-name", "J", ALL, "SBATCH_JOB_NAME SLURM_JOB_NAME"),
    Option("jobid", "", "srun", "SLURM_JOB_ID SLURM_JOBID", v.count),
    Option("kill-on-bad-exit", "K", "srun", "KILL_BAD_EXIT", v.zero_or_one, "1"),
    Option("kill-on-invalid-dep", "", ALL, "", v.yes_or_no),
    Option("label", "l", "srun", "LABELIO", v.flag),
    Option("licenses", "L", ALL, "", v.licenses),
    Option("mail-type", "", ALL, "", v.mail_types),
    Option("mail-user"),
    Option("mcs-label"),
    Option("mem", "", ALL, "MEM_PER_NODE", v.memory),
    Option("mem-bind", "", ALL, "MEM_BIND"),
    Option("mem-per-cpu", "", ALL, "MEM_PER_CPU", v.memory),
    Option("mem-per-gpu", "", ALL, "MEM_PER_GPU", v.memory),
    Option("mincpus", "", ALL, "", v.count),
    Option("mpi", "", "srun", "MPI_TYPE"),
    Option("multi-prog", "", "srun", "", v.flag),
    Option("network", "", ALL, "NETWORK"),
    Option("nice", "", ALL, "", v.nice, "100"),
    Option("no-kill", "k", ALL, "NO_KILL", v.unless_off, "set"),
    Option("no-bell", "", "salloc", "NO_BELL", v.flag),
    Option("no-requeue", "", "sbatch", "NO_REQUEUE", v.flag),
    Option("no-shell", "", "salloc", "", v.flag),
    Option("nodefile", "F"),
    Option("nodelist", "w"),
    Option("nodes", "N", ALL, "SLURM_JOB_NUM_NODES SLURM_NNODES", v.nodes),
    Option("ntasks", "n", ALL, "SLURM_NTASKS SLURM_NPROCS", v.count),
    Option("ntasks-per-core", "", ALL, "SLURM_NTASKS_PER_CORE", v.count),
    Option("ntasks-per-gpu", "", ALL, "SLURM_NTASKS_PER_GPU", v.count),
    Option("ntasks-per-node", "", ALL, "SLURM_NTASKS_PER_NODE", v.count),
    Option("ntasks-per-socket", "", ALL, "SLURM_NTASKS_PER_SOCKET", v.count),
    Option("open-mode", "", SUBMITTING, "OPEN_MODE", v.open_mode),
    Option("output", "o", SUBMITTING, "SBATCH_OUTPUT SRUN_OUTPUT SLURM_STDOUTMODE"),
    Option("overcommit", "O", ALL, "OVERCOMMIT", v.flag),
    Option("overlap", "", "srun", "OVERLAP", v.flag),
    Option("oversubscribe", "s", ALL, "", v.flag),
    Option("parsable", "", "sbatch", "", v.flag),
    Option("partition", "p", ALL, "PARTITION"),
    Option("power", "", ALL, "POWER"),
    Option("prefer"),
    Option("preserve-env", "E", "srun", "", v.flag),
    Option("priority", "", ALL, "", v.priority),
    Option("profile", "", ALL, "PROFILE"),
    Option("propagate", "", ALL, "", v.resource_limits, "ALL"),
    Option("pty", "", "srun", "", v.flag),
    Option("qos", "q", ALL, "QOS"),
    Option("quiet", "Q", ALL, "", v.flag),
    Option("reboot", "", ALL, "", v.flag),
    Option("requeue", "", "sbatch", "REQUEUE", v.as_written, ""),
    Option("relative", "r", "srun", "", v.whole),
    Option("reservation", "", ALL, "RESERVATION"),
    Option("send-libs", "", "srun", "SEND_LIBS", v.yes_or_no, "yes"),
    Option("signal", "", ALL, "SIGNAL", v.signal),
    Option("slurmd-debug", "", "srun"),
    Option("sockets-per-node"),
    Option("spread-job", "", ALL, "SPREAD_JOB", v.flag),
    Option("switches", "", ALL, "REQ_SWITCH"),
    Option("task-epilog", "", "srun", "TASK_EPILOG"),
    Option("task-prolog", "", "srun", "TASK_PROLOG"),
    Option("test-only", "", SUBMITTING, "", v.flag),
    Option("thread-spec", "", ALL, "THREAD_SPEC"),
    Option("threads", "T", "srun", "THREADS", v.count),
    Option("threads-per-core", "", ALL, "THREADS_PER_CORE"),
    Option("time", "t", ALL, "TIMELIMIT", v.time_limit),
    Option("time-min", "", ALL, "", v.time_limit),
    Option("tmp", "", ALL, "", v.memory),
    Option("tres-bind", "", ALL, "TRES_BIND"),
    Option("tres-per-task", "", ALL, "TRES_PER_TASK"),
    Option("uid"),
    Option("usage", "", ALL, "", v.flag),
    Option("unbuffered", "u", "srun", "UNBUFFEREDIO", v.flag),
    Option("use-min-nodes", "", ALL, "USE_MIN_NODES", v.flag),
    Option("verbose", "v", ALL, "DEBUG", v.flag),
    Option("version", "V", ALL, "", v.flag),
    Option("wait", "W", "sbatch", "WAIT", v.flag),
    Option("wait", "W", "srun", "WAIT", v.whole),
    Option("wait-all-nodes", "", "sbatch salloc", "WAIT_ALL_NODES", v.zero_or_one),
    Option("wckey", "", ALL, "WCKEY"),
    Option("wrap", "", "sbatch"),
    Option("x11", "", ALL, "", v.as_written, "all"),
)

_SYNONYMS = {"cluster": "clusters", "tasks-per-node": "ntasks-per-node"}
_NAMES_OF_2002 = {
    "cddir": "chdir",
    "debug": "verbose",
    "nprocs": "ntasks",
    "signal-opts": "signal",
    "timelimit": "time",
}
"""Names that srun had in SLURM 2002."""


class GivenOption(NamedTuple):
    """Option as it was written: `flag` is -c or --cpus-per-task, `text` its value.

    `option` is None if the command has no such option. A shortened name is given in full.
    """

    option: Option | None
    flag: str
    text: str = ""


@cache
def options_by_flag(command: str) -> dict[str, Option]:
    """Return the options of a command by each form in which they can be written."""
    options = [option for option in OPTIONS if command in option.commands.split()]
    by_name = {option.name: option for option in options}
    flags = {option.flag: option for option in options}
    flags |= {f"-{option.letter}": option for option in options if option.letter}
    synonyms = _SYNONYMS | (_NAMES_OF_2002 if command == "srun" else {})
    return flags | {f"--{synonym}": by_name[name] for synonym, name in synonyms.items()}


def parse_options(words: Iterator[str], command: str) -> tuple[list[GivenOption], str | None]:
    """Return the options of a command line, and the first other word; None if there is none.

    They are read as getopt_long(3) reads them for these commands: up to `--`, or to the first word
    that is no option, which is the script or program. Its arguments remain in `words`. The name of
    an option may be shortened if only one begins so.

    Args:
        words: the words of the line. An option that needs a value takes the next one, whatever it
            is.
        command: the command whose options they are.

    Raises:
        InvalidInput: the last option lacks its value.
    """
    given: list[GivenOption] = []
    for word in read_words(words, options_by_flag(command), _takes):
        if isinstance(word, str):
            return given, word
        option, flag, text = word
        text = option.bare if text is None and option is not None else text
        given.append(GivenOption(option, flag, text or ""))
    return given, None


def _takes(option: Option) -> TakesValue:
    if option.reader is v.flag:
        return "no"
    return "yes" if option.bare is None else "in its word"


def read_values(texts: Mapping[str, str], command: str) -> dict[str, Any]:
    """Return the values of options of a command, from texts by name.

    Raises InvalidInput if the command has no such option, or it does not take this value.
    """
    options, values = options_by_flag(command), {}
    for name, text in texts.items():
        option = options.get(f"--{name}")
        if option is None:
            what = f"{command} has no option --{name[:40]}"
            raise InvalidInput(what, field=f"--{name[:40]}", remedy=f"see {command} --help")
        values[option.name] = option.reader(text, option.flag)
    return values
