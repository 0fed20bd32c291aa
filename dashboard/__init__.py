"""The Django project and the web side: pages, the live socket, the demo."""
