"""Why a job waits: one headline, every check with its evidence, its place in the queue and who is
ahead."""
