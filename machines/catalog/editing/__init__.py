"""What the Studio knows of a definition's text: where each part stands, what may be written there, how to mend it.

``checking.check`` is the one entry: text in; findings with places and fixes, names for completion, and the diagram out.
It runs in a helper process (``machines.catalog.offload``) and needs neither Django nor Redis.
"""
