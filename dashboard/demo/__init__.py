"""``make demo``: a server, sample machines, logins, a worker, traffic and the site, on one machine, from one command.

The cast: ``show`` runs the whole, ``backdrop`` prepares what must be there first (server, database, machines),
``logins`` makes the accounts, ``cast`` starts and watches the processes, ``output`` keeps what they say,
``traffic`` moves instances about: the machines of ``orders`` and ``requests``, too, and ``night`` clears up.
"""
