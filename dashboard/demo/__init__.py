"""``make demo``: a server, sample machines, logins, a worker, traffic and the site, on one machine, from one command.

``demo`` runs the whole and makes the accounts. ``preparation`` makes the server, the database and the machines.
``processes`` starts and watches the processes, ``output`` keeps their output. ``traffic`` moves instances, as devices,
customers and a night shift would.
"""
