from tests.installation.conftest import python  # noqa: F401  a fixture
