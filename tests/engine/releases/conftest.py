"""The release before this one."""

import tarfile
from pathlib import Path

import pytest

ARCHIVE = (
    Path(__file__).resolve().parents[2] / "fixtures" / "release_before.tar.xz"
)  # `git archive 3fb0439 machines/engine`


@pytest.fixture(scope="session")
def before(tmp_path_factory):
    """A folder with the engine of the release before, the last one whose library has no number."""
    folder = tmp_path_factory.mktemp("release-before")
    with tarfile.open(ARCHIVE) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python has it from 3.11.4 on
        archive.extractall(folder)
    return folder
