"""The HTTP API: JSON operations with the permissions of pages and sockets, and stable error codes."""
