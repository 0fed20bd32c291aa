"""Webhooks: sends what machines ``emit`` to addresses of others, signed, with retries.

A pump reads the logs of all partitions, as one of a group of readers with the pumps of all other workers, and makes one
delivery for each webhook and message before a message counts as read: it comes in exactly once. A sender posts what is
due, and tries again for a day: it goes out at least once, with the same ``webhook-id`` each time. Both are duties of
every worker; what is to be sent they share through SQL.
``managing`` is what pages and the API call.
"""
