"""HTTP server: uvicorn with limits, orderly closing, Unix sockets and logs."""
