"""REST service: schemas, routes, authentication, HTTP server, and the client."""
