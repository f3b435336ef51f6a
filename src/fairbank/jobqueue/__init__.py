"""Parts of a queue of jobs that the simulator, the live explanation and a workload manager share.
Pure.
"""
