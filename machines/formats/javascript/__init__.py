"""Translates the JavaScript in SCXML and XState to expressions and actions of machines. It is read, and never run.

``parsing`` turns a text into a tree, ``translator`` a node into an expression, ``scripts`` a script into actions. The
names and the special rules of a format are in its ``scope.Scope``.
"""
