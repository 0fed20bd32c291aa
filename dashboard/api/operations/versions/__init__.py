"""Operations on versions of a machine: drafts, migration plans and roll-outs."""
