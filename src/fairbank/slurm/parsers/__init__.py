"""Parsers of the output of `sacct`, `squeue`, `sacctmgr` and `scontrol`, of every known version.

Pure: text in, values out. A damaged line is reported with its number and field and left out; it
never becomes a wrong value.
"""
