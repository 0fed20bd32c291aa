"""Times of pages: zones, formats, fields that hold a time, themes."""
