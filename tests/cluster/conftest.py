"""One cluster and one installation on it for all tests of this folder; a test that breaks a node brings it back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters import Cluster

from .site import Site


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory, program_of_this_run: str | None) -> Iterator[Cluster]:
    """Three primaries with a replica each."""
    with Cluster(tmp_path_factory.mktemp("cluster"), program=program_of_this_run, persistent=True) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def site(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site and a worker on it."""
    site = Site(cluster, tmp_path_factory.mktemp("site"))
    try:
        site.start()
        yield site
    finally:
        site.stop()
