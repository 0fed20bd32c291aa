"""Map-reduce: many items, mapped in chunks by all workers, reduced to one result.

::

    from machines.mapreduce import MapReduce, mapper, reducer

    run = MapReduce("totals", map_function=sum, reduce_function=sum, chunks=10)
    run.add_items(range(1_000_000))
    run.map()
    run.reduce(timeout=60)

- ``definitions``: the two machines it consists of, a run and a chunk
- ``run``: what callers hold; ``actions``: what people do with a run
- ``functions``: which function may map or reduce; ``handlers``: the jobs of the workers
- ``store``: items in pages, which chunk they belong to, and where they are kept
"""

from .run import (
    AlreadyStarted,
    FunctionError,
    MapFailed,
    MapReduce,
    NotFinished,
    Progress,
    ReduceFailed,
    Run,
    RunFailed,
    UnregisteredFunction,
    mapper,
    reducer,
)

__all__ = [
    "AlreadyStarted",
    "FunctionError",
    "MapFailed",
    "MapReduce",
    "NotFinished",
    "Progress",
    "ReduceFailed",
    "Run",
    "RunFailed",
    "UnregisteredFunction",
    "mapper",
    "reducer",
]
