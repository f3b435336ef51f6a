"""Routes, one module a noun. A handler reads the request, calls a service and answers."""
