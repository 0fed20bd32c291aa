"""The HTTP API: JSON in and out, the rights of pages and sockets, stable error codes."""
