"""``make demo``: a server, sample machines, logins, a worker, traffic and the site, on one machine, from one command.

``demo`` runs the whole. ``preparation`` makes the server, the database and the machines, ``logins`` the accounts.
``processes`` starts and watches the processes, ``output`` keeps their output. ``traffic`` moves instances
with ``orders`` and ``requests``; ``night_shift`` re-drives dead jobs.
"""
