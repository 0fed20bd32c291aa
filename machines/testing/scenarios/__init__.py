"""Scenario files: runs of a machine written down as given, when and then, in YAML.

- ``document``: what a file holds; ``reader``: text to that, with findings; ``schema.json``: the same for editors
- ``names``: compares the names in a file with the definition that it is about
- ``sandbox``: machines on keys of their own, and the steps that a scenario can take; ``runner``: runs scenarios
- ``expectations``: what ``then`` asserts; ``results``: results as text and as JUnit XML
- ``files``: which files there are, and the definitions that they run
- ``writer``: scenarios as YAML and as a module for pytest

``machine test`` and the pytest plugin run them. Nothing here is imported by a site or a worker.
"""

from __future__ import annotations

from .document import Finding, Scenario, ScenarioFile
from .reader import read_text, schema

__all__ = ["Finding", "Scenario", "ScenarioFile", "read_text", "schema"]
