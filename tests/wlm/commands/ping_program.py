"""Program of two tasks that send each other messages, as the mping of the SLURM report of 2002.

`mping FIRST LAST` sends messages of FIRST bytes, of twice as many, and so on up to LAST.
"""

import os
import sys
import time
from contextlib import suppress

first, last = int(sys.argv[1]), int(sys.argv[2])
rank, tasks = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
if tasks != 2:
    sys.exit(f"mping: {tasks} tasks cannot ping each other: use 2")
pipes = [f"mping-{os.environ['SLURM_JOBID']}-{number}" for number in range(2)]
for name in pipes:
    with suppress(FileExistsError):
        os.mkfifo(name)
# Each open waits for that of the other task; the order is the same in both.
first_end = os.open(pipes[0], os.O_WRONLY if rank == 0 else os.O_RDONLY)
second_end = os.open(pipes[1], os.O_RDONLY if rank == 0 else os.O_WRONLY)
ends = (second_end, first_end) if rank == 0 else (first_end, second_end)
incoming, outgoing = os.fdopen(ends[0], "rb"), os.fdopen(ends[1], "wb", buffering=0)

size = first
while size <= last:
    begun = time.monotonic()
    if rank == 0:
        outgoing.write(bytes(size))
        incoming.read(size)
        seconds = (time.monotonic() - begun) / 2
        rate = size / seconds / 1e6
        print(f"1 pinged 0: {size:8} bytes {seconds * 1e6:10.2f} uSec {rate:8.2f} MB/s", flush=True)
    else:
        outgoing.write(incoming.read(size))
    size *= 2
