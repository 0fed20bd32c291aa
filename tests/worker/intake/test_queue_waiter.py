"""What an idle worker waits on."""

from __future__ import annotations

import threading

from machines.worker.intake.queue_waiter import QueueWaiter


def test_a_wait_whose_command_is_still_on_its_way_is_ended_all_the_same(engine):
    bell = QueueWaiter(engine, 120)
    blpop, about_to, go_on = bell._client.blpop, threading.Event(), threading.Event()

    def late(*given, **options):
        about_to.set()
        go_on.wait(60)
        return blpop(*given, **options)

    bell._client.blpop = late
    waiting = threading.Thread(target=bell.wait, args=[[engine.keys.news]], daemon=True)
    waiting.start()
    assert about_to.wait(60)
    threading.Timer(0.1, go_on.set).start()
    bell.interrupt()
    waiting.join(60)
    assert not waiting.is_alive()
    bell.close()
