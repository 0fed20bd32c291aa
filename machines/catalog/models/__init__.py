"""Tables of the catalog: machines, their versions, drafts and stored plans."""
