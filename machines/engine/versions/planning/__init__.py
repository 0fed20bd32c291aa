"""What plans are made of: policies, expressions, counterparts of states, codes of findings, the JSON form."""
