"""Serves the site: one uvicorn process for HTTP and websockets."""
