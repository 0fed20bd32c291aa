"""JavaScript, as SCXML and XState hold it, to the expressions and actions of machines. It is read, and never run.

``parsing`` makes a tree of a text, ``translator`` an expression of a node, ``scripts`` actions of a script. What a
format names, and what it does otherwise, is its ``scope.Scope``.
"""
