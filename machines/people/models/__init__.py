"""Tables of people and programs: grants, API tokens, when each was last seen."""
