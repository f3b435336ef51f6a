"""Launcher and step daemon, with real processes."""
