"""The HTTP language: shapes, routes, who asks, and the client."""
