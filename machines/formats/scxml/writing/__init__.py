"""A definition to an SCXML document."""
