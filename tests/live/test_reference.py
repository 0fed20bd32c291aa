from __future__ import annotations

from dashboard.live import reference
from dashboard.live.messages import CLOSES, ERRORS


def test_the_page_is_what_the_code_says() -> None:
    assert reference.main(["--check"]) == 0, "run python -m dashboard.live.reference"


def test_a_stale_page_is_noticed_and_written_anew(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(reference, "PAGE", tmp_path / "page.md")
    assert reference.main(["--check"]) == 1
    assert "run python -m dashboard.live.reference" in capsys.readouterr().err
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0


def test_an_unknown_argument_shows_how_to_call_it(capsys) -> None:
    assert reference.main(["--nonsense"]) == 2
    assert "--check" in capsys.readouterr().err


def test_every_code_stands_in_it() -> None:
    for code in (*ERRORS, *CLOSES):
        assert f"`{code.value}`" in reference.page()
