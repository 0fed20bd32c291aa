"""Actions on versions of a machine: from a draft to a published version. ``machines.instances.plans`` moves
instances from one to another.

- ``drafts``: definitions that are not published yet: save, check, rebase, publish, discard; who has the editor open
- ``comparison``: how versions and drafts differ, and recorded histories on them; plans, dry runs and replays as one
  person may see them
- ``rollouts``: which version new instances get, and the figures of each version
"""
