"""The routes, one file a noun. A handler reads, asks the service, answers."""
