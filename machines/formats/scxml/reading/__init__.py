"""An SCXML document to a definition."""
