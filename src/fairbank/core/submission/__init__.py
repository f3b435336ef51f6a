"""Job submission as sbatch, srun and salloc take it: options, #SBATCH lines, arrays, dependencies.

Only the standard library is imported, so that a command that submits a job starts fast.
"""
