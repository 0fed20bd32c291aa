"""Scenario files: runs of a machine written down as given, when and then, in YAML.

- ``document``: what a file holds, and scenarios as YAML and as a module for pytest
- ``reader``: text to that, with findings; ``schema.json``: the same for editors
- ``files``: which files there are, and the definitions that they run, with the names that these do not have
- ``runner``: machines on keys of their own, the steps of a scenario, and what ``then`` asserts
- ``results``: results as text and as JUnit XML

``machine test`` and the pytest plugin run them. Nothing here is imported by a site or a worker.
"""

from .document import Finding, Scenario, ScenarioFile
from .reader import read_text, schema

__all__ = ["Finding", "Scenario", "ScenarioFile", "read_text", "schema"]
