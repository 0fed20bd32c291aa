"""The diagram on the page of a machine: its modes, and the figures it shows."""
