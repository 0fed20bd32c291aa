"""Statistics of an hour, a day, a month: workers measure once a minute, pages and the API read."""
