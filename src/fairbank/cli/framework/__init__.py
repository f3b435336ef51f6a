"""Command-line framework: parsing, output, context and endings of every command."""
