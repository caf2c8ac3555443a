"""Kernels as functions of JAX: one primitive, which XLA lowers to a call of machine code, or to launches on a GPU."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

import linkwise as lw

from ..compiler.xla import ATTRIBUTE, XlaTarget
from .signatures import Signature, signature

PLATFORMS = {"cpu": "cpu", "cuda": "CUDA"}  # where kernels run, and what XLA calls that
call_p = Primitive("linkwise_call")
call_p.multiple_results = True


def differentiable(kernel: lw.Kernel) -> Callable[..., Any]:
    """``kernel`` as a JAX function: batches broadcast, and ``jax.vmap`` becomes a batch.

    It has its derivatives in both directions, and these have theirs.  Derivatives by configurations are plain ones, by
    each of the nq coordinates: that of a quaternion has a part along the quaternion, which a step within unit length
    does not use.  A kernel with several results gives a tuple of them.  It runs where the arrays are, on the CPU or on
    a GPU, whichever its own target is.
    """
    if not isinstance(kernel, lw.Kernel):
        raise TypeError(f"differentiable takes a kernel such as linkwise.compile('mass_matrix', mech), got {kernel!r}")
    if kernel.target not in PLATFORMS:
        raise ValueError(
            f"{kernel.name} is compiled for {kernel.target!r}: JAX calls kernels with target='cpu' or target='cuda'"
        )
    called = signature(kernel)

    def function(*arrays: Any) -> Any:
        results = call_p.bind(*called.checked(arrays), called=called)
        return results[0] if len(results) == 1 else tuple(results)

    function.__name__ = kernel.name
    return jax.jit(function, inline=True)


# -- the primitive ------------------------------------------------------------------------------------


@cache
def _alone(called: Signature) -> Callable[..., Any]:
    return jax.jit(lambda *arrays: call_p.bind(*arrays, called=called))


@call_p.def_impl
def _evaluated(*arrays: Any, called: Signature) -> Any:
    with jax.disable_jit(False):  # where it is disabled, this would come back here
        return _alone(called)(*arrays)


@call_p.def_abstract_eval
def _shapes(*arrays: Any, called: Signature) -> Any:
    batch = called.batch([x.shape for x in arrays])
    return [jax.core.ShapedArray((*batch, *core), called.dtype) for core in called.results]


def _batched(arrays: Sequence[Any], axes: Sequence[int | None], *, called: Signature) -> tuple[Any, Any]:
    """The axis that is mapped over goes ahead of all axes of the batch."""
    cores = map(len, called.shapes)
    ranks = [np.ndim(x) - core - (at is not None) for x, core, at in zip(arrays, cores, axes, strict=True)]
    aligned = []
    for x, rank, at in zip(arrays, ranks, axes, strict=True):
        if at is not None:
            x = jnp.moveaxis(x, at, 0)
            x = x.reshape((x.shape[0], *(1,) * (max(ranks) - rank), *x.shape[1:]))
        aligned.append(x)
    return call_p.bind(*aligned, called=called), (0,) * len(called.results)


batching.primitive_batchers[call_p] = _batched


def _in_rows(*arrays: Any, called: Signature, platform: str) -> list[Any]:
    """The call as the compiled code takes it: every array (states, core), or (core) where one serves all states."""
    batch = called.batch([x.shape for x in arrays])
    states, dtype = math.prod(batch), called.dtype
    if states == 0 or not any(map(math.prod, called.results)):
        return [jnp.zeros((*batch, *core), dtype) for core in called.results]
    rows, shared = [], []
    for x, core in zip(arrays, called.shapes, strict=True):
        lead = x.shape[: x.ndim - len(core)]
        shared.append(math.prod(lead) == 1)
        if shared[-1]:
            rows.append(x.reshape(core))
        else:
            rows.append(jnp.broadcast_to(x, (*batch, *core)).reshape((states, *core)))
    call = called.calls(platform)(states, shared)
    _register(call.target, platform)
    shapes = [jax.ShapeDtypeStruct((states, *core), dtype) for core in called.results]
    shapes += [jax.ShapeDtypeStruct((size,), dtype) for size in call.between]
    results = jax.ffi.ffi_call(call.target.name, shapes)(*rows, **{ATTRIBUTE: call.words})
    return [x.reshape((*batch, *core)) for x, core in zip(results, called.results, strict=False)]


_known: set[tuple[str, str]] = set()  # targets that XLA has been told of
_lock = threading.Lock()


def _register(target: XlaTarget, platform: str) -> None:
    with _lock:
        if (target.name, platform) not in _known:
            capsule = jax.ffi.pycapsule(target.handler.address)
            jax.ffi.register_ffi_target(target.name, capsule, platform=PLATFORMS[platform])
            _known.add((target.name, platform))


def _elsewhere(context: Any, *arrays: Any, called: Signature) -> Any:
    raise NotImplementedError(
        f"{called.name}: functions of linkwise.jax run on the CPU and on NVIDIA GPUs, not on "
        f"{'/'.join(context.module_context.platforms)}: put arrays there with "
        "jax.device_put(x, jax.devices('cpu')[0]), or set JAX_PLATFORMS=cpu"
    )


mlir.register_lowering(call_p, _elsewhere)
for _platform in PLATFORMS:
    _rows = mlir.lower_fun(partial(_in_rows, platform=_platform), multiple_results=True)
    mlir.register_lowering(call_p, _rows, platform=_platform)


# -- derivatives --------------------------------------------------------------------------------------


def _derivative(primals: Sequence[Any], tangents: Sequence[Any], *, called: Signature) -> tuple[Any, Any]:
    """The result, and how it changes along a direction: a call of the kernel that is derived for that."""
    moving = [name for name, way in zip(called.names, tangents, strict=True) if type(way) is not ad.Zero]
    nonzero = [way for way in tangents if type(way) is not ad.Zero]
    return call_p.bind(*primals, called=called), call_p.bind(*primals, *nonzero, called=called.along(tuple(moving)))


ad.primitive_jvps[call_p] = _derivative


def _transposed(weights: Sequence[Any], *primals: Any, called: Signature) -> list[Any]:
    """Transpose rule: the weighted derivative for a directional derivative, and the other way round."""
    count = 0 if called.base is None else len(called.base.names)
    unknown = [ad.is_undefined_primal(x) for x in primals]
    if called.base is None or any(unknown[:count]) or not all(unknown[count:]):
        raise NotImplementedError(f"{called.name} is not linear in its arguments, and cannot be transposed")
    known, linear = primals[:count], [x.aval for x in primals[count:]]
    if all(type(weight) is ad.Zero for weight in weights):
        return [None] * count + [ad.Zero(to) for to in linear]
    if called.of:  # linear in the weights of the base's results, which come back
        every = call_p.bind(*known, *called.base.parts(called.wrt, weights[0]), called=called.base.along(called.wrt))
        parts = [x for x, name in zip(every, called.base.kernel.output_shapes, strict=True) if name in called.of]
    else:
        named = zip(called.base.kernel.output_shapes, weights, strict=True)
        counted = {name: weight for name, weight in named if type(weight) is not ad.Zero}
        (flat,) = call_p.bind(*known, *counted.values(), called=called.base.weighed(called.wrt, tuple(counted)))
        parts = called.base.parts(called.wrt, flat)
    return [None] * count + [_summed(x, to.shape) for x, to in zip(parts, linear, strict=True)]


ad.primitive_transposes[call_p] = _transposed


def _summed(x: Any, shape: tuple[int, ...]) -> Any:
    """The sum over the axes along which an array of this shape was broadcast."""
    x = x.sum(axis=tuple(range(x.ndim - len(shape))))
    stretched = tuple(axis for axis, (called, size) in enumerate(zip(x.shape, shape, strict=True)) if called != size)
    return x.sum(axis=stretched, keepdims=True) if stretched else x
