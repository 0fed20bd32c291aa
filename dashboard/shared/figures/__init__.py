"""Figures that several pages show: counts, depths, charts."""
