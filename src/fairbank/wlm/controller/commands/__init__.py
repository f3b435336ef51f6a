"""Requests of commands: their server, their answers, and rows as commands print them."""
