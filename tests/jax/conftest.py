import pytest

jax = pytest.importorskip("jax")


def precision(double):
    """float64 or not, within a context."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(double)
    return jax.experimental.enable_x64(double)  # before JAX 0.8


@pytest.fixture(autouse=True)
def double_precision():
    """float64, for these tests alone."""
    import jax.experimental  # noqa: F401

    with precision(True):
        yield
