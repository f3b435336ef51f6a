"""Commands under Slurm's names, each a module with `run(name, words)`, which returns the exit code.

They start fast: no asyncio, msgspec or NumPy, and nothing of the rest of Fairbank but `core`,
`report.slurm` and `wlm.client`.
"""
