"""Total rates of any mechanism: kernels of trees, and of quasi-velocities under constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.runtime.explanations import KernelError
from ..compiler.store import WRENCHES, kernel_function, stored
from ..mechanism import Mechanism, MechanismError
from .states import Float64Array


def evaluate_total_rates(
    mech: Mechanism,
    name: str,
    arrays: Sequence[Any],
    normalized: bool = True,
    independent: Any = None,
    wrenches: Any = None,
) -> Any:
    """The result of an algorithm of total rates for q and vectors, of any mechanism."""
    if getattr(mech, "loops", ()):
        return constrained_total_rates(name, mech, arrays, normalized, independent, wrenches)
    if independent is not None:
        raise MechanismError(
            "independent= chooses among coordinates that constraints couple, and there are none: leave it out"
        )
    ports: tuple[Any, ...] = () if wrenches is None else (WRENCHES,)
    function = kernel_function(mech, (name, *ports, ("normalized", normalized)))
    return function(*arrays, *(() if wrenches is None else (wrenches,)))


def constrained_total_rates(
    name: str,
    mech: Mechanism,
    arrays: Sequence[Any],
    normalized: bool = True,
    independent: Any = None,
    wrenches: Any = None,
) -> Any:
    """The result of the kernel for elimination orders of the initial configuration.  If it is NaN, the result for
    orders at the first of the configurations, which may have other degrees of freedom."""
    if independent is not None:
        independent = (independent,) if isinstance(independent, str) else tuple(independent)
    q = arrays[0]
    ports: tuple[Any, ...] = ()
    if wrenches is not None:
        arrays, ports = [*arrays, wrenches], (WRENCHES,)
    request = (name, *ports, ("normalized", normalized))
    chosen: tuple[Any, ...] = () if independent is None else (("independent_velocities", independent),)
    try:
        with np.errstate(invalid="ignore"):  # NaN states are checked next
            result, wrong = kernel_function(mech, (*request, *chosen))(*arrays), None
    except KernelError as error:  # perhaps another number of degrees of freedom
        result, wrong = None, error
    if result is None or _lacks_numbers(result, arrays):
        around = np.asarray(q, dtype=float).reshape(-1, mech.nq)
        if wrong is not None and not len(around):
            raise wrong
        order, independent_columns = _around(mech, around[0])
        chosen = (
            ("fronts", order),
            ("independent_velocities", independent_columns if independent is None else independent),
        )
        try:
            with np.errstate(invalid="ignore"):
                result = kernel_function(mech, (*request, *chosen))(*arrays)
        except KernelError:
            raise (wrong or _no_motions(mech)) from None
        if _lacks_numbers(result, arrays):
            raise _no_motions(mech)
    return result


def _around(mech: Mechanism, q: Float64Array) -> tuple[Any, tuple[int, ...] | None]:
    """Elimination orders around q and the independent velocities there, stored by the number of independent
    constraints."""
    from ..constraints.elimination_orders import fronts_around, independent_places
    from ..constraints.equations import degrees_of_freedom

    dofs = int(degrees_of_freedom(mech, q))
    return stored(mech, (_around, dofs), lambda: (fronts_around(mech, q), independent_places(mech, q)))


def _lacks_numbers(result: Float64Array | tuple[Float64Array, ...], arrays: Sequence[Any]) -> bool:
    results = result if isinstance(result, tuple) else (result,)
    return any(np.isnan(x).any() for x in results) and all(np.isfinite(np.asarray(x)).all() for x in arrays)


def _no_motions(mech: Mechanism) -> MechanismError:
    return MechanismError(
        f"mechanism {mech.name!r} has no quasi-velocities here: a position is singular, or these coordinates do not "
        "determine the others; choose others with independent=, or use joint momenta (linkwise.formulations.momenta), "
        "which have "
        "no choice"
    )
