import pytest

from . import twins


@pytest.fixture(scope="module")
def servers(tmp_path_factory, program_of_this_run):
    with twins.running(tmp_path_factory.mktemp("twins"), program_of_this_run) as found:
        yield found


@pytest.fixture
def pair(servers):
    servers.count_compiled()
    servers.count_refused()
    return servers
