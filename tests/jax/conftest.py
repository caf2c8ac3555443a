import pytest

jax = pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def double_precision():
    """float64, for these tests alone."""
    with jax.enable_x64(True):
        yield
