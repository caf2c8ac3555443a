"""linkwise's own operators, compiled, in the order, axes and names of the papers.

What the papers state of H, phi, M, P, D, G, psi ... is asked here of the kernels that ``lw.compile`` makes of them, not
of a re-implementation. Programs are evaluated by their reference target, which takes complex coordinates as well: a
derivative of a compiled operator is exact to rounding.
"""

from __future__ import annotations

from functools import cache, cached_property
from types import SimpleNamespace

import numpy as np

import linkwise as lw
from linkwise import operators as op
from linkwise.compiler.targets import numpy_reference

from .tip_to_base import Chain, TipToBase


@cache
def kernel(expression: op.Expression, mech: lw.Mechanism) -> lw.Kernel:
    return lw.compile(expression, mech, target="numpy")


def compiled(expression: op.Expression, mech: lw.Mechanism, q, **vectors) -> np.ndarray:
    """The value of a compiled expression, in linkwise's order and axes; ``q`` may be complex."""
    program = kernel(expression, mech).program
    arrays = [q if array.name == "q" else vectors[array.name] for array in program.inputs]
    dtype = "complex128" if any(map(np.iscomplexobj, arrays)) else "float64"
    return numpy_reference.evaluate(program, arrays, dtype)[0]


def of(arm: TipToBase, expression: op.Expression, **vectors) -> np.ndarray:
    """The same in the papers' order and the arm's axes: a stacked vector, or a matrix between stacked vectors.

    ``vectors`` are stacked as well: (nv,) of the joints, (6n,) of the links.
    """
    change = {arm.mech.nv: arm.joints, 6 * arm.n: arm.links}
    given = {name: change[len(vector)].T @ vector for name, vector in vectors.items()}
    given = {name: x.reshape(-1, 6) if len(x) == 6 * arm.n else x for name, x in given.items()}
    value = compiled(expression, arm.mech, arm.q, **given)
    if expression.is_vector:
        return change[value.size] @ value.ravel()
    return change[value.shape[0]] @ value @ change[value.shape[1]].T


class _Compiled:
    """Mixed into an arm: its phi(k, m), M(k), H(k) and stacked phi and B are linkwise's."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self._phi, M, H = (of(self, x) for x in (op.phi, op.M, op.H))
        ends = np.cumsum([0, *self.sizes])
        self.M = np.stack([self.M[0], *(self._block(M, k, k) for k in range(1, self.n + 1))])
        self.H = [self.H[0], *(H[ends[k - 1] : ends[k], 6 * k - 6 : 6 * k] for k in range(1, self.n + 1))]

    @staticmethod
    def _block(matrix, k: int, m: int) -> np.ndarray:
        return matrix[6 * k - 6 : 6 * k, 6 * m - 6 : 6 * m]

    def phi(self, k: int, m: int) -> np.ndarray:
        if 1 <= m <= k <= self.n:
            return self._block(self._phi, k, m)
        if 1 <= k < m <= self.n:
            return np.linalg.inv(self._block(self._phi, m, k))
        return super().phi(k, m)  # from or to the tip or the ground

    @cached_property
    def operators(self) -> Operators:
        """All of linkwise's operators here, each compiled and evaluated once."""
        return Operators(self)

    @property
    def stacked_phi(self) -> np.ndarray:
        return self._phi

    @property
    def B(self) -> np.ndarray:
        rot = (self.rotation[1] if self.axes == "world" else np.eye(3)) @ self.mech.frames["tip"].rotation
        return self.links @ compiled(op.B("tip"), self.mech, self.q) @ np.kron(np.eye(2), rot).T


class LibraryArm(_Compiled, TipToBase):
    """A ``TipToBase`` made of linkwise's compiled operators."""


class LibraryChain(_Compiled, Chain):
    """A ``Chain`` made of linkwise's compiled operators and biases."""

    def __init__(self, mech: lw.Mechanism, q, v) -> None:
        super().__init__(mech, q, v)
        rates = op.joint_vector("v")
        a = of(self, op.bias_acceleration(rates) + op.gravity(), v=self.joints @ v)
        b = of(self, op.bias_force(rates), v=self.joints @ v)
        self.a = [self.a[0], *a.reshape(-1, 6)]
        self.b = [self.b[0], *b.reshape(-1, 6)]
        if self.sizes[-1] == 6:  # see Chain.accelerations: the papers' base acceleration has this part of the bias
            self.a[-1] = self.a[-1] - [0.0, 0.0, 0.0, *np.cross(self.V[self.n][:3], self.V[self.n][3:])]


class Operators:
    """The stacked operators of an arm by their names in jain1995 and rodriguez1992, each compiled when asked for.

    ``m`` and ``ell`` are the innovations factor times D^(1/2) and its inverse; ``parts`` has lists of blocks by link.
    """

    EXPRESSIONS = {
        **{name: getattr(op, name) for name in "H phi psi E_phi E_psi M P P_plus D G K tau tau_bar Phi Psi".split()},
        "phi_tilde": op.Phi,
        "root_D": op.D_half,
        "m": (op.I + op.H @ op.phi @ op.K) @ op.D_half,
        "ell": op.D_half.inv @ (op.I - op.H @ op.psi @ op.K),
        "mass_matrix": op.H @ op.phi @ op.M @ op.phi.T @ op.H.T,
    }

    def __init__(self, arm: TipToBase) -> None:
        self.arm, self.I, self.I6 = arm, np.eye(arm.mech.nv), np.eye(6 * arm.n)

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in self.EXPRESSIONS:
            raise AttributeError(name)
        value = of(self.arm, self.EXPRESSIONS[name])
        setattr(self, name, value)
        return value

    @cached_property
    def parts(self) -> SimpleNamespace:
        """Lists that begin with number 0; psi[k] is psi(k+1, k), and so is K[k], of k < n."""
        n, ends = self.arm.n, np.cumsum([0, *self.arm.sizes])
        own, joint = ([None, *(slice(e[k - 1], e[k]) for k in range(1, n + 1))] for e in (6 * np.arange(n + 1), ends))
        diagonal = lambda x, rows, columns: [None, *(x[rows[k], columns[k]] for k in range(1, n + 1))]  # noqa: E731
        return SimpleNamespace(
            **{name: diagonal(getattr(self, name), own, own) for name in ("P", "tau", "tau_bar")},
            P_plus=[np.zeros((6, 6)), *diagonal(self.P_plus, own, own)[1:]],
            D=diagonal(self.D, joint, joint),
            G=[np.zeros((6, 1)), *diagonal(self.G, own, joint)[1:]],
            K=[None, *(self.K[own[k + 1], joint[k]] for k in range(1, n))],
            psi=[None, *(self.E_psi[own[k + 1], own[k]] for k in range(1, n))],
        )
