"""Addresses of pages: converters, links of ids, navigation."""
