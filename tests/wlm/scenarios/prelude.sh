# Functions that the commands of a scenario use. STATES is a file with the lines "job|state|reason"
# of all jobs, which the runner keeps up to date. Its time is that of the query.

LIMIT=${LIMIT:-150}  # seconds that a scenario may wait for one condition

# Run sbatch, or `fairbank run`. $J is the last job, $J1, $J2, ... are all in order.
submit() {
    local code job
    command "$@" > .answer 2>&1
    code=$?
    cat .answer
    job=$(sed -nE 's/^(Submitted batch job )?([0-9]{7})( .*)?$/\2/p
        1s/^job ([0-9]{7}): .*$/\1/p' .answer)
    if [ -n "$job" ]; then J=$job; COUNT=$((COUNT + 1)); eval "J$COUNT=$job"; fi
    return $code
}

sbatch() { submit sbatch "$@"; }
fairbank() { if [ "$1" = run ]; then submit fairbank "$@"; else command fairbank "$@"; fi; }

# Print the states, or with a reason "state reason", of a job or of one task such as 7_2.
states_of() {
    local job state reason
    while IFS='|' read -r job state reason; do
        case $job in "$1" | "$1"_*) [ -n "$2" ] && echo "$state $reason" || echo "$state" ;; esac
    done < "$STATES"
}

# until_all PATTERN JOB: each state of the job matches the pattern, in a query that began after the
# commands before this one.
until_all() {
    local all end=$((SECONDS + LIMIT))
    : > .waiting
    while [ $SECONDS -lt $end ]; do
        if [ "$STATES" -nt .waiting ]; then
            all=$(states_of "$2" "$3")
            if [ -n "$all" ] && ! grep -qvE "^($1)$" <<< "$all"; then return; fi
        fi
        sleep 0.1
    done
    echo "gave up waiting for job $2 to be $1; it is $all"
    exit 1
}

# Wait until all tasks of a job are in one of the states: wait_for RUNNING $J
wait_for() { until_all "$1" "$2"; }

# Wait until a job is pending for a reason: waits $J Dependency
waits() { until_all "PENDING $2" "$1" reason; }

# Wait until jobs have ended.
ended() {
    local job
    for job; do
        until_all 'COMPLETED|CANCELLED|FAILED|TIMEOUT|NODE_FAIL|PREEMPTED|DEADLINE|OUT_OF_MEMORY' \
            "$job"
    done
}

# Wait until a file has a line that matches.
has_line() {
    local end=$((SECONDS + LIMIT))
    until grep -qs -- "$2" "$1"; do
        [ $SECONDS -lt $end ] || { echo "gave up waiting for $2 in $1"; exit 1; }
        sleep 0.1
    done
}

ACCOUNTED=JobID,JobName,Partition,AllocCPUS,ReqCPUS,ReqMem,ReqTRES,AllocTRES,State,ExitCode
ACCOUNTED=$ACCOUNTED,DerivedExitCode,NNodes,NTasks,Timelimit,QOS,Reason,Start,End,WorkDir,SubmitLine

# Print the accounting of a job, as soon as it says the same as the queue.
accounting() {
    local end=$((SECONDS + 30)) known
    known=$(states_of "$1" | sed 's/PENDING.*/PENDING/' | sort)
    while [ $SECONDS -lt $end ]; do
        sacct -D -P -j "$1" -o "$ACCOUNTED" > .accounting 2>&1
        if [ "$(accounted_states)" = "$known" ]; then break; fi
        sleep 0.5
    done
    cat .accounting
}

accounted_states() {  # of jobs and tasks; "?" for a record that has not been completed yet
    awk -F'|' '
        function tasks(id,  parts, range, i, n) {  # number of tasks in 7_[1-3,5%2]
            if (!match(id, /\[.*\]/)) return 1
            id = substr(id, RSTART + 1, RLENGTH - 2); sub(/%.*/, "", id)
            n = 0; split(id, parts, ",")
            for (i in parts) n += split(parts[i], range, "-") > 1 ? range[2] - range[1] + 1 : 1
            return n
        }
        NR > 1 { split($9, word, " "); split($1, part, ".")
            if ($1 !~ /\./) state[$1] = word[1]; else if (word[1] == "RUNNING") runs[part[1]]
            if ($2 == "allocation") print "?" }
        END { for (job in state) for (i = tasks(job); i > 0; i--) print state[job]
              for (job in runs) if (state[job] != "RUNNING") print "?" }' .accounting | sort
}

QUEUED='%i|%j|%u|%P|%t|%r|%D|%C|%m|%l|%S|%E|%f|%h|%K|%k|%n|%x|%Q'

# Show all that scontrol, squeue and sacct know of a job; or of one with the commands named.
show() {
    local job=$1; shift
    for command in ${*:-scontrol squeue sacct}; do
        echo "@$command"
        case $command in
        scontrol) scontrol -o show job "$job" ;;
        squeue) squeue -a -t all -j "$job" -o "$QUEUED" ;;
        sacct) accounting "$job" ;;
        esac
    done
}

# Steps. `job OPTIONS` runs the script of its input inside salloc, with these functions.
PRELUDE=$(readlink -f "${BASH_SOURCE[0]}")
PATH=$PATH:${PRELUDE%/*}

job() {
    cat > .job
    salloc -Q "$@" timeout $LIMIT bash -c ". $PRELUDE; hosts_of_job; . ./.job" < /dev/null
}

# The number of tasks on a node would be that of each step.
hosts_of_job() {
    unset SLURM_NTASKS_PER_NODE
    export HOSTS=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | tr "\n" " ")
}

# Print the host of a job with a number from 0 on.
host() { echo "$HOSTS" | cut -d ' ' -f $(($1 + 1)); }

# Print the hosts of so many tasks, in no order.
arbitrary_hosts() {
    local count=$(wc -w <<< "$HOSTS") task list=
    for ((task = 0; task < $1; task++)); do
        list=$list,$(host $(((2 * task * task + count - 1) % count)))
    done
    echo "${list:1}"
}

# Sort the lines of the input, with the end of each task on a line of its own: Slurm puts those
# together that a node reports at once, and may print twice that a step is cancelled. Before 23.02
# a line named the function that printed it.
ends() {
    awk -F ': ' '
        $1 == "srun" && $4 ~ /^tasks? / {
            split($4, words, " "); count = split(words[2], parts, ",")
            for (i = 1; i <= count; i++) {
                last = split(parts[i], range, "-")
                for (rank = range[1]; rank <= range[last]; rank++) print $3 ": task " rank ": " $5
            }
            next
        }
        /STEP .* CANCELLED/ && cancelled++ { next }
        { sub(/launch\/slurm: _step_signal: /, ""); print }' | sort
}

# Print the names of files and their sorted lines.
contents() {
    local file
    for file; do echo "= $file"; sort "$file"; done
}

# Print the accounting of the steps of a job.
steps_of() {
    accounting "$1" > /dev/null
    sacct -n -P -j "$1" -o JobID,JobName,State,ExitCode,NNodes,NTasks,AllocCPUS | grep '^[0-9]*\.'
}
