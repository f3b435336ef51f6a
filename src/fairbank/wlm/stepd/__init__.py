"""Launcher and step daemon: start the processes of a step, and outlive the node daemon.

The package uses the standard library only, so that its processes stay small
(docs/decisions/0050-step-daemon.md).
"""
