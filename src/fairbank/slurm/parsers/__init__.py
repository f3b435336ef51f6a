"""What Slurm's commands say, as values: `sacct`, `squeue`, `sacctmgr`, `scontrol`, of every version that we know.

Pure: text in, values out. What cannot be read is told by line and field and left out; it never becomes a wrong value. Where the
versions differ there is a module for each: `json_2205` and `json_2311`.
"""
