"""Rows become what people and programs read: tables, CSV, lines for scripts, JSON. Pure: text comes out, nobody prints."""
