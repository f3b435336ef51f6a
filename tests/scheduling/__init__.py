"""Who starts, where and when: schedules known by hand, the same ones from definitions, and laws
that hold for every workload.
"""
