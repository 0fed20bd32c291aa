"""The live view: changes in Redis, sent to the browsers that watch them.

From Redis to the browser:

- ``hub.connections``         a client that reads, and a subscriber to each server
- ``hub.hub``                 one per process and loop: waits, reads so that no step is missed, reconciles, recovers
- ``hub.feeds``               last value of each watched topic, numbered and encoded once, and who watches it
- ``outbox``                  what one socket has yet to be sent: the latest of each topic, never a queue; it is written
                              straight to the connection where that takes it
- ``sockets.frame_writer``    the transport of a connection, where the ASGI server gives it
- ``sockets.consumer``        one socket: login, permissions, limits; no business logic
- ``sockets.permissions``     what a socket may see, looked at again while it is open

A notification is only ever a hint to read again; every value sent is absolute.
"""
