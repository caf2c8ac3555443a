"""A network that catches a falling pole on a cart, trained by gradients through its motions: JAX differentiates the
network, linkwise the steps in between.

python examples/25_policy_in_jax.py [folder for pictures]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw

try:
    import jax
except ImportError:
    print("this example needs JAX: pip install 'linkwise[jax]'")
    sys.exit()
import jax.numpy as jnp

import linkwise.jax as lwj

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
STEPS, DT, ITERATIONS = 80, 0.02, 40
CART_POLE = lw.mechanisms.cart_pole()
jax.config.update("jax_enable_x64", False)  # float32, as JAX has it by default
STEP = lwj.differentiable(lw.motion.step_kernel(CART_POLE, DT, dtype="float32"))


def network(numbers: list[tuple[jax.Array, jax.Array]], q: jax.Array, v: jax.Array) -> jax.Array:
    """Joint forces (2,): that of the cart's motor, at most 15 N, from the state; the hinge has none."""
    x = jnp.array([q[0], jnp.sin(q[1]), jnp.cos(q[1]), v[0], v[1]])
    for weights, offsets in numbers[:-1]:
        x = jnp.tanh(weights @ x + offsets)
    weights, offsets = numbers[-1]
    return jnp.array([15.0 * jnp.tanh(weights @ x + offsets)[0], 0.0])


def motion(numbers: list[tuple[jax.Array, jax.Array]], start: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(q, v, tau), each (steps, 2), from rest at ``start`` (2,)."""

    def step(state: tuple[jax.Array, jax.Array], _: None) -> tuple[tuple[jax.Array, jax.Array], tuple]:
        tau = network(numbers, *state)
        q, v = jnp.split(STEP(*state, tau, DT), 2)
        return (q, v), (q, v, tau)

    return jax.lax.scan(step, (start, jnp.zeros(2)), None, STEPS)[1]


def cost(numbers: list[tuple[jax.Array, jax.Array]], starts: jax.Array) -> jax.Array:
    """How far the pole is from upright, the cart from the middle and both from rest.  The angle is not taken modulo a
    whole rotation: what is cheapest otherwise is to let the pole fall, and catch it when it has come round."""
    q, v, _ = jax.vmap(motion, (None, 0))(numbers, starts)
    return jnp.mean(q[..., 1] ** 2 + 0.1 * q[..., 0] ** 2 + 0.01 * jnp.sum(v**2, -1))


@jax.jit
def trained(numbers: list[tuple[jax.Array, jax.Array]], starts: jax.Array) -> tuple[list, jax.Array]:
    """The network after ITERATIONS steps of Adam, and the costs on the way."""

    def improve(state: tuple, k: jax.Array) -> tuple[tuple, jax.Array]:
        numbers, mean, square = state
        value, slope = jax.value_and_grad(cost)(numbers, starts)
        norm = jnp.sqrt(sum(jnp.sum(x**2) for x in jax.tree.leaves(slope)))
        slope = jax.tree.map(lambda x: x / jnp.maximum(1.0, norm), slope)
        mean = jax.tree.map(lambda m, x: 0.9 * m + 0.1 * x, mean, slope)
        square = jax.tree.map(lambda s, x: 0.99 * s + 0.01 * x**2, square, slope)
        rate = 0.02 * (1.0 - k / ITERATIONS) + 1e-4

        def moved(x: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
            return x - rate * m / (1.0 - 0.9 ** (k + 1.0)) / (jnp.sqrt(s / (1.0 - 0.99 ** (k + 1.0))) + 1e-8)

        return (jax.tree.map(moved, numbers, mean, square), mean, square), value

    zero = jax.tree.map(jnp.zeros_like, numbers)
    (numbers, _, _), values = jax.lax.scan(improve, (numbers, zero, zero), jnp.arange(float(ITERATIONS)))
    return numbers, values


def main() -> None:
    rng = np.random.default_rng(0)
    sizes = [5, 32, 32, 1]
    numbers = [
        (jnp.asarray(rng.normal(size=(n, m)) / np.sqrt(m), jnp.float32), jnp.zeros(n, jnp.float32))
        for m, n in zip(sizes, sizes[1:], strict=False)
    ]
    starts = jnp.asarray(rng.uniform(-1.0, 1.0, (32, 2)) * [0.5, 0.8], jnp.float32)
    numbers, values = trained(numbers, starts)
    print(f"cost {values[0]:.2f} at first, {values[-1]:.3f} after {ITERATIONS} steps")
    q, _, tau = jax.vmap(motion, (None, 0))(numbers, starts)
    again, _ = lw.rollout(CART_POLE, *(np.asarray(x) for x in (starts, 0 * starts, tau)), np.float32(DT), STEPS)
    print(f"the same forces in linkwise.rollout: {np.abs(again[:, 1:] - q).max():.0e} rad or m of difference")
    upright = np.mean(np.cos(q[:, -1, 1]) > 0.95)
    print(f"{100 * upright:.0f} percent of {len(starts)} motions end with the pole upright")

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    left.semilogy(values)
    left.set(xlabel="steps of training", ylabel="cost")
    t = DT * np.arange(1, STEPS + 1)
    right.plot(t, np.degrees(q[:, :, 1]).T, color="C0", alpha=0.3)
    right.set(xlabel="time (s)", ylabel="angle of the pole (deg), upright at 0")
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / "25_policy.png"
    figure.savefig(path, dpi=100)
    plt.close(figure)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
