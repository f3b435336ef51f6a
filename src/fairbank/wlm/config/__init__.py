"""Settings of the workload manager from wlm.toml or slurm.conf: text in, values out. Pure."""
