"""What the demo's processes say is kept, in bounded space."""

import os

from dashboard.demo import processes


def pipe():
    read, write = os.pipe()
    return os.fdopen(read, "rb"), os.fdopen(write, "wb")


def test_lines_go_to_the_file_and_the_last_ones_are_remembered(tmp_path):
    source, writer = pipe()
    copy = processes.Output(source, tmp_path / "worker.log")
    writer.write(b"".join(b"line %d\n" % number for number in range(100)))
    writer.close()
    copy.close()
    assert copy.last_words().splitlines() == [f"line {number}" for number in range(88, 100)]
    assert len((tmp_path / "worker.log").read_text().splitlines()) == 100


def test_the_file_is_turned_over_before_it_grows_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "LARGEST", 1000)
    source, writer = pipe()
    copy = processes.Output(source, tmp_path / "worker.log")
    for _ in range(100):
        writer.write(b"x" * 99 + b"\n")
    writer.close()
    copy.close()
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"worker.log", "worker.log.1"}
    assert max(sizes.values()) <= 1100


def test_bytes_that_are_no_text_do_no_harm(tmp_path):
    source, writer = pipe()
    copy = processes.Output(source, tmp_path / "worker.log")
    writer.write(b"\xff\xfe\n")
    writer.close()
    copy.close()
    assert (tmp_path / "worker.log").read_bytes() == b"\xff\xfe\n"
