"""Building blocks of kernel calls from torch: result, weighted derivatives and their slices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import compress

import numpy as np
import torch
from torch import Tensor

import linkwise as lw

from ..frameworks import COTANGENT, derivative_of, product_of
from .gpus import Launcher

DEVICES = {"cpu": "cpu", "cuda": "cuda"}  # targets of kernels, by what torch calls the device
Wanted = tuple[bool, ...]  # which inputs derivatives are wanted by


class Signature:
    """A kernel, and the sizes and types that calls depend on."""

    def __init__(self, kernel: lw.Kernel):
        self.kernel, self.run = kernel, kernel.function
        self.names, self.shapes = kernel.inputs, tuple(kernel.input_shapes.values())
        self.sizes = tuple(map(math.prod, self.shapes))
        self.dtype = getattr(torch, kernel.dtype.name)
        self.device = next((name for name, target in DEVICES.items() if target == kernel.target), "cpu")
        (self.result,) = kernel.output_shapes.values()
        self._derived: dict[Wanted, Signature] = {}
        self._along: Signature | None = None

    def of(self, *tensors: Tensor) -> Tensor:
        """The result, without gradients."""
        if self.device != "cpu":
            return self._launcher(*tensors)
        result = self.run(*[x.numpy(force=True) if x.requires_grad else x.numpy() for x in tensors])
        return torch.from_numpy(result) if type(result) is np.ndarray else torch.as_tensor(result)

    @cached_property
    def _launcher(self) -> Launcher:
        return Launcher(self.kernel)

    @property
    def is_product(self) -> bool:
        """Whether the last input is a weight. Such a kernel is linear in it and is differentiated as a matrix."""
        return COTANGENT in self.names

    def derived(self, wanted: Wanted) -> Signature:
        """The kernel of the vector-Jacobian product with its last input, by the inputs that need gradients. For a
        kernel that is already such a product: the plain derivatives.
        """
        try:
            return self._derived[wanted]
        except KeyError:
            pass
        make, names = derivative_of if self.is_product else product_of, tuple(compress(self.names, wanted))
        made = self._derived[wanted] = signature(make(self.kernel, names))
        return made

    def along(self) -> Signature:
        """The kernel of how the result changes along a direction of all inputs, which follow these."""
        if self._along is None:
            self._along = signature(lw.jvp_of(self.kernel, self.names, tangent=False))
        return self._along

    def batch(self, tensors: Sequence[Tensor]) -> torch.Size:
        """The shape of the batch."""
        cores = map(len, self.shapes)
        return torch.broadcast_shapes(*(x.shape[: x.ndim - core] for x, core in zip(tensors, cores, strict=True)))

    def parts(self, wanted: Wanted, tensors: Sequence[Tensor], flat: Tensor) -> list[Tensor | None]:
        """The gradients of single inputs, summed over the batch axes that these were broadcast along."""
        pieces = iter(flat.split(list(compress(self.sizes, wanted)), -1))
        derivatives: list[Tensor | None] = []
        for needed, core, tensor in zip(wanted, self.shapes, tensors, strict=True):
            piece = next(pieces) if needed else None
            if piece is not None and len(core) != 1:
                piece = piece.reshape((*piece.shape[:-1], *core))
            if piece is not None and piece.shape != tensor.shape:
                piece = piece.sum_to_size(tensor.shape)
            derivatives.append(piece)
        return derivatives

    def with_leading_axis(self, in_dims: Sequence[int | None], tensors: Sequence[Tensor]) -> list[Tensor]:
        """Tensors with the axis that is mapped over ahead of all axes of the batch."""
        cores = map(len, self.shapes)
        ranks = [x.ndim - core - (at is not None) for x, core, at in zip(tensors, cores, in_dims, strict=True)]
        aligned = []
        for x, rank, at in zip(tensors, ranks, in_dims, strict=True):
            if at is not None:
                x = x.movedim(at, 0)
                x = x.reshape((x.shape[0], *(1,) * (max(ranks) - rank), *x.shape[1:]))
            aligned.append(x)
        return aligned


@lru_cache(maxsize=1024)
def signature(kernel: lw.Kernel) -> Signature:
    return Signature(kernel)


def times(weight: Tensor, matrix: Tensor) -> Tensor:
    return torch.einsum("...i,...ij->...j", weight, matrix)
