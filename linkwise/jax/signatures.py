"""Building blocks of kernel calls from JAX: shapes, derived kernels, XLA call targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import accumulate, pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import linkwise as lw

from ..compiler.xla import Calls, calls_on_cpu, calls_on_cuda

PRECISIONS: dict[Any, str] = {np.dtype(name): name for name in ("float32", "float64")}


class Signature:
    """A kernel, and the shapes and types that calls depend on.

    base, wrt   of a derived kernel: whose derivative it is, and by which inputs
    of          names of the results whose derivatives are weighed; empty for a derivative along a direction
    """

    def __init__(
        self,
        kernel: lw.Kernel,
        base: Signature | None = None,
        wrt: tuple[str, ...] = (),
        of: tuple[str, ...] = (),
    ):
        self.kernel, self.name, self.dtype = kernel, kernel.name, kernel.dtype
        self.names, self.shapes = kernel.inputs, tuple(kernel.input_shapes.values())
        self.results = tuple(kernel.output_shapes.values())
        self.base, self.wrt, self.of = base, wrt, of
        self._derived: dict[tuple[tuple[str, ...], tuple[str, ...]], Signature] = {}
        self._calls: dict[str, Calls] = {}

    def __repr__(self) -> str:
        return self.name

    def calls(self, platform: str) -> Calls:
        """The XLA call of the kernel on a platform, "cpu" or "cuda"."""
        if platform not in self._calls:
            make = calls_on_cpu(self.kernel) if platform == "cpu" else calls_on_cuda(self.kernel, gpus())
            self._calls[platform] = make
        return self._calls[platform]

    # -- derivatives ----------------------------------------------------------------------------------

    def along(self, wrt: tuple[str, ...]) -> Signature:
        """Signature of the derivative along directions of some inputs, which follow the kernel's own inputs."""
        return self._kept(wrt, (), lambda: lw.jvp_of(self.kernel, wrt, tangent=False))

    def weighed(self, wrt: tuple[str, ...], of: tuple[str, ...]) -> Signature:
        """Signature of the derivatives by some inputs, weighted with cotangents of some results, which follow the
        kernel's own inputs.
        """
        return self._kept(wrt, of, lambda: lw.vjp_of(self.kernel, wrt, tangent=False, of=of))

    def _kept(self, wrt: tuple[str, ...], of: tuple[str, ...], make: Callable[[], lw.Kernel]) -> Signature:
        if (wrt, of) not in self._derived:
            self._derived[wrt, of] = Signature(make(), self, wrt, of)
        return self._derived[wrt, of]

    def parts(self, wrt: Sequence[str], flat: Any) -> list[Any]:
        """Split the last axis into arrays shaped like these inputs."""
        shapes = [self.shapes[self.names.index(name)] for name in wrt]
        ends = accumulate(map(math.prod, shapes), initial=0)
        return [
            flat[..., start:end].reshape((*flat.shape[:-1], *shape))
            for (start, end), shape in zip(pairwise(ends), shapes, strict=True)
        ]

    # -- arguments ------------------------------------------------------------------------------------

    def batch(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The shape of the batch."""
        leads = (shape[: len(shape) - len(core)] for shape, core in zip(shapes, self.shapes, strict=True))
        return np.broadcast_shapes(*leads)

    def checked(self, values: Sequence[Any]) -> list[Any]:
        """The arguments as arrays of JAX that fit."""
        if len(values) != len(self.names):
            expected = ", ".join(f"{name} {shape}" for name, shape in zip(self.names, self.shapes, strict=True))
            raise TypeError(f"{self.name} takes {len(self.names)} arrays ({expected}), {len(values)} were given")
        arrays = [self.array(name, x) for name, x in zip(self.names, values, strict=True)]
        for name, core, x in zip(self.names, self.shapes, arrays, strict=True):
            if x.shape[max(0, x.ndim - len(core)) :] != core:
                expected = ", ".join(("...", *map(str, core)))
                raise lw.KernelError(f"{self.name}: {name} has shape {x.shape}, expected ({expected})")
        try:
            self.batch([x.shape for x in arrays])
        except ValueError:
            leads = zip(self.names, self.shapes, arrays, strict=True)
            listed = ", ".join(f"{name} {x.shape[: x.ndim - len(core)]}" for name, core, x in leads)
            raise lw.KernelError(f"{self.name}: the batch shapes do not broadcast: {listed}") from None
        return arrays

    def array(self, name: str, value: Any) -> Any:
        """The argument as a JAX array in the kernel's precision."""
        if value is None or isinstance(value, (str, dict)):
            problem = "missing: it is None" if value is None else f"no array but {value!r}"
            raise lw.KernelError(f"{self.name}: {name} is {problem}")
        try:
            x = jnp.asarray(value)
        except (TypeError, ValueError) as error:
            raise lw.KernelError(f"{self.name}: {name} is no array: {error}") from None
        if x.dtype == self.dtype:
            return x
        if self.dtype == np.float64 and jnp.asarray(0.0).dtype != np.float64:
            raise TypeError(
                f"{self.name} is compiled for float64, which JAX does not have while jax_enable_x64 is off: compile "
                "with dtype='float32', or jax.config.update('jax_enable_x64', True) first"
            )
        takes_any = jnp.issubdtype(x.dtype, jnp.integer) or x.weak_type  # a number of Python's, as 0.01
        if not takes_any and not np.can_cast(x.dtype, self.dtype):
            raise TypeError(
                f"{self.name} is compiled for {self.dtype}, but {name} has dtype {x.dtype}: convert it with "
                f"x.astype('{self.dtype}'), or compile with another dtype"
            )
        return x.astype(self.dtype)


def gpus() -> list[int]:
    """CUDA numbers of the GPUs that JAX uses in this process."""
    return [device.local_hardware_id for device in jax.local_devices(backend="cuda")]


@cache
def usual_target() -> str:
    """The target that kernels are compiled for when they are made; code for others is compiled when it is called."""
    if jax.default_backend() != "gpu" or find_spec("cupy") is None:
        return "cpu"
    try:
        return "cuda" if gpus() else "cpu"
    except RuntimeError:  # GPUs of another maker
        return "cpu"


@lru_cache(maxsize=1024)
def signature(kernel: lw.Kernel) -> Signature:
    return Signature(kernel)


def precision_of(name: str, values: Sequence[Any]) -> str:
    """The precision that JAX gives the sum of all arguments: "float32" while jax_enable_x64 is off."""
    names = {PRECISIONS.get(x.dtype) if isinstance(x, jax.Array) else None for x in values}
    only = names.pop() if len(names) == 1 else None
    if only is not None:  # by far the most calls
        return only
    try:
        arrays = [x if hasattr(x, "dtype") or isinstance(x, (int, float)) else np.asarray(x) for x in values]
    except ValueError as ragged:
        raise lw.KernelError(f"{name}: an argument is no array: {ragged}") from None
    dtype = jnp.result_type(float, *(x for x in arrays if getattr(getattr(x, "dtype", None), "kind", "") != "O"))
    if dtype not in PRECISIONS:
        raise TypeError(f"{name}: arrays of {dtype}: they must be float32 or float64")
    return PRECISIONS[dtype]
