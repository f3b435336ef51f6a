"""GPUs of the host: detection, variables, and groups that deny those of others."""
