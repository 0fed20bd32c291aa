"""What a killed run of ``machine repartition`` has left between two partitions, a worker brings into force."""

from __future__ import annotations

import pytest

from machines.duties import DUTIES
from machines.engine import Engine
from machines.engine.keys import choose_partition
from machines.engine.transfer.repartitioning import Repartition
from machines.worker.duties.engine_duties import GrowthRescue
from tests.engine.builders import door, publish


def test_a_worker_brings_it_into_force_when_no_run_is_alive(engine: Engine, caplog, monkeypatch) -> None:
    assert "growth" in DUTIES
    publish(engine, door(), *(f"d{n}" for n in range(20)))
    killed = Repartition(engine.client, engine.keys, "door", 4, settle=0)
    monkeypatch.setattr(killed, "_arrive", lambda departed: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        killed.run()
    duty = GrowthRescue(engine)
    assert duty.run_once() is False
    assert engine.counts("door")["Shut"] < 20
    engine.client.delete(engine.keys.growth_alive("door"))
    duty.run_once()
    count = sum(choose_partition(f"d{n}", 4) != 0 for n in range(20))
    assert f"{count} instances were between two partitions" in caplog.text
    fresh = Engine(engine.client, prefix=engine.keys.prefix)
    assert fresh.counts("door")["Shut"] == 20
