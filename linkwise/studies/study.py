"""Studies: thousands of cases of one computation, in chunks; each a pure function of the study and its number."""

from __future__ import annotations

import math
import pickle
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw

from . import sampling as designs
from .cases import Cases
from .computations import Computation
from .distributions import Distribution, Given, Grid, distribution
from .errors import StudyError, check_count
from .quantities import Quantity, factor_names, quantity
from .record import described
from .results import Results
from .runners import chunks_done, this_process
from .stores import RESERVED, Chunk, opened

FEWEST_CHUNKS = 16  # so that something is seen of small studies, and all workers have work
FROM_NOTES = ("initial", "metadata.timestep", "metadata.actuated_joints")  # matter, and are no part of its value
STUDIES_KEPT = 4  # by a worker, with their compiled code


@dataclass(frozen=True, eq=False)
class Study:
    """A mechanism, what varies, and what to compute; ``run()`` computes it.

    mechanism   the one that is studied
    compute     ``Rollout``, ``LinearModels``, ``Equilibria``, ``Singularities`` or ``Function``
    vary        {name: distribution, or a number or array for all cases}: see docs/studies.md for the names
    cases       how many; with grids, at every point of these; with "saltelli", rows, each of several cases
    seed        of random numbers: the same seed, the same numbers, however the study is split
    sampling    "random", "latin_hypercube", "sobol" (Sobol's sequence) or "saltelli" (for sensitivity indices)
    chunk       cases that are computed and stored at once; chosen by the size of results if left out
    """

    mechanism: lw.Mechanism
    compute: Computation
    vary: Mapping[str, Any] = field(default_factory=dict)
    cases: int = 1000
    seed: int = 0
    sampling: str = "random"
    chunk: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, lw.Mechanism):
            raise StudyError(f"a study needs a Mechanism, not {type(self.mechanism).__name__}")
        if not isinstance(self.compute, Computation):
            raise StudyError(
                f"compute must be a Rollout, LinearModels, Equilibria, Singularities or Function, not {self.compute!r}"
            )
        self.compute.check(self.mechanism)
        for name, least in (("cases", 1), ("seed", 0), ("chunk", 1)):
            if name != "chunk" or self.chunk is not None:
                check_count(name, getattr(self, name), least)
        if self.sampling not in designs.DESIGNS:
            raise StudyError(f"sampling is one of {', '.join(designs.DESIGNS)}, not {self.sampling!r}")
        object.__setattr__(self, "vary", {name: distribution(drawn) for name, drawn in self.vary.items()})
        for name in self.vary:
            for part in (name.partition(".")[0], name.rpartition(".")[2]):
                if part in self.compute.unsupported and not name.startswith("my."):
                    raise StudyError(f"{name!r} cannot vary here: {self.compute.unsupported[part]}")
        for name, drawn in self.vary.items():
            if isinstance(drawn, Given) and not drawn.same and len(drawn.table) != self.cases:
                raise StudyError(f"{name}: {len(drawn.table)} given values for {self.cases} cases")
        self.sample(0, 1)  # raises where shapes do not fit

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # without what follows from these

    # Cases -----------------------------------------------------------------------------------------------------------

    @cached_property
    def quantities(self) -> dict[str, Quantity]:
        """Quantities that vary, by name."""
        nominal = self.compute.nominal(self.mechanism)
        return {name: quantity(self.mechanism, name, drawn, nominal) for name, drawn in self.vary.items()}

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """Names of the numbers that are drawn, the columns of the design."""
        pairs = self.quantities.items()
        return tuple(factor for name, quantity in pairs for factor in factor_names(name, quantity, self.vary[name]))

    @property
    def n_cases(self) -> int:
        """Number of all cases: ``cases`` times the cases per row of the design times the points of grids."""
        return self.cases * designs.cases_per_row(self.sampling, len(self.factors)) * math.prod(self.grid_shape)

    @property
    def grid_shape(self) -> tuple[int, ...]:
        return tuple(len(drawn.points) for drawn in self.vary.values() if isinstance(drawn, Grid))

    @property
    def cases_per_chunk(self) -> int:
        if self.chunk is not None:
            return min(int(self.chunk), self.n_cases)
        return min(self.compute.cases_per_chunk(self.mechanism), -(-self.n_cases // FEWEST_CHUNKS))

    @property
    def n_chunks(self) -> int:
        return -(-self.n_cases // self.cases_per_chunk)

    def sample(self, first: int = 0, count: int | None = None) -> Cases:
        """Values drawn for cases ``first`` to before ``first + count``, all by default."""
        count = self.n_cases - first if count is None else count
        if not (0 <= first and 0 <= count and first + count <= self.n_cases):
            raise StudyError(f"cases {first} to {first + count - 1} are not among the {self.n_cases} of the study")
        points = math.prod(self.grid_shape)
        numbers = np.arange(first, first + count)
        rows, positions = numbers // points, np.unravel_index(numbers % points, self.grid_shape or (1,))
        u = np.empty((0, len(self.factors)))
        if count:  # equal at all points of a grid, so that these can be compared
            start, stop = int(rows[0]), int(rows[-1]) + 1
            design = designs.DESIGNS[self.sampling]
            u = design(self.seed, self.factors, self.cases, start, stop - start)[rows - start]
        values, column, axis = {}, 0, 0
        for name, drawn in self.vary.items():
            varied = self.quantities[name]
            if isinstance(drawn, Grid):
                values[name], axis = drawn.at(positions[axis], varied), axis + 1
            elif isinstance(drawn, Given):
                values[name] = drawn.at(rows // designs.cases_per_row(self.sampling, len(self.factors)), varied)
            else:
                width = drawn.columns(varied)
                try:
                    values[name] = drawn.values(u[:, column : column + width], varied)
                except StudyError as error:
                    raise StudyError(f"{name}: {error}") from None
                except ValueError as error:
                    raise StudyError(f"{name} has shape {varied.shape}, which {drawn} does not fit: {error}") from None
                column += width
        return Cases(self._shared, first, count, values)

    @cached_property
    def _shared(self) -> lw.Mechanism:
        """The mechanism with code that all its variants share.  Studies that vary the same quantities compile once."""
        return _with_shared_code(_dumps(self.mechanism), tuple(sorted(self.vary)))

    def chunk_of(self, k: int) -> Chunk:
        """The k-th chunk: cases from ``start`` to before ``stop``."""
        return Chunk(k, k * self.cases_per_chunk, min((k + 1) * self.cases_per_chunk, self.n_cases))

    def arrays(self, first: int, count: int) -> dict[str, np.ndarray]:
        """Results of ``count`` cases from ``first`` on, and their varied quantities."""
        cases = self.sample(first, count)
        try:
            computed = self.compute.arrays(cases)
        except StudyError:
            raise
        except Exception as error:
            raise StudyError(f"cases {first} to {first + count - 1}: {type(error).__name__}: {error}") from error
        both = sorted({*computed} & {*cases.values})
        if both:
            raise StudyError(f"{both[0]!r} is the name of a quantity that varies: the result needs another name")
        varied = {name: x for name, x in cases.values.items() if not _is_same(self.vary[name])}
        return {name: _storable(name, values) for name, values in {**varied, **computed}.items()}

    # Running ---------------------------------------------------------------------------------------------------------

    def run(
        self,
        client: Any = None,
        store: str | Path | None = None,
        progress: bool | None = None,
        in_flight: int | None = None,
    ) -> Results:
        """Compute all cases that are not in the store yet.

        client     None: here, with threads; a client of Dask or the address of a scheduler; a number of processes on
                   this machine; or any ``concurrent.futures.Executor``
        store      a folder: NAME.zarr for arrays, NAME.parquet for tables.  What is there is kept, and the study goes
                   on where it stopped; without one, results are in memory
        progress   whether a bar shows how far it is; by default as ``lw.codegen.progress`` says
        in_flight  chunks that are computed or wait at the same time; by default two for each thread of the workers

        Interrupted (Ctrl-C) or not, each chunk is stored at once; chunks of lost workers are computed again by others.
        """
        to = opened(store, self)
        pending = [self.chunk_of(k) for k in range(self.n_chunks) if not to.is_done(k)]
        recipe = self if client is None else _dumps(self)
        for chunk, arrays in chunks_done(client, recipe, pending, self.n_cases, progress, in_flight):
            to.write(chunk, arrays)
        return to.results()

    # Description -----------------------------------------------------------------------------------------------------

    def record(self) -> dict[str, Any]:
        """The study as plain data: its definition, and axes, labels and units of its arrays."""
        mech, compute = self.mechanism, self.compute
        axes = {name: list(x) for name, x in compute.axes(mech).items()}
        units = {name: varied.unit for name, varied in self.quantities.items() if varied.unit}
        vectors = {name: varied for name, varied in self.quantities.items() if len(varied.shape) == 1 and varied.labels}
        return {
            "definition": {
                "linkwise": lw.__version__,
                "mechanism": described(mech)
                | {name.rpartition(".")[2]: described(attrgetter(name)(mech)) for name in FROM_NOTES},
                "compute": described(compute),
                "vary": described(self.vary),
                "cases": int(self.cases),
                "seed": int(self.seed),
                "sampling": self.sampling,
                "chunk": self.cases_per_chunk,
            },
            "n_cases": self.n_cases,
            "factors": list(self.factors),
            "varied": [name for name, drawn in self.vary.items() if not _is_same(drawn)],
            "grid": {name: len(x.points) for name, x in self.vary.items() if isinstance(x, Grid)},
            "axes": axes | {name: [varied.axis] for name, varied in vectors.items()},
            "labels": {varied.axis: list(varied.labels) for varied in vectors.values()} | compute.labels(mech),
            "units": compute.units(mech) | units,
        }

    def with_(self, **changes: Any) -> Study:
        """A copy with other values of some fields."""
        return replace(self, **changes)


def _is_same(drawn: Distribution) -> bool:
    """Whether it is one value for all cases, which the record has."""
    return isinstance(drawn, Given) and drawn.same


def _storable(name: str, values: Any) -> np.ndarray:
    """An array that every store keeps as it is; raises ``StudyError`` for names and types that some cannot keep."""
    if not isinstance(name, str) or not name:
        raise StudyError(f"results are named by strings, not by {name!r}")
    if name in RESERVED:
        raise StudyError(f"{name!r} is the name of {RESERVED[name]}: the result needs another name")
    if np.ma.isMaskedArray(values):
        raise StudyError(f"{name!r} is a masked array: give .filled(np.nan), stores keep no masks")
    array = np.ascontiguousarray(values)
    if array.dtype.kind not in "biufc" or array.dtype.itemsize > (16 if array.dtype.kind == "c" else 8):
        raise StudyError(f"{name!r} is of type {array.dtype}: results are numbers of at most 64 bits, real or complex")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _dumps(value: Any) -> bytes:
    """A pickle for other processes; functions of notebooks and scripts travel too where cloudpickle is there."""
    try:
        import cloudpickle
    except ImportError:
        try:
            return pickle.dumps(value)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise StudyError(
                f"other processes cannot be sent this ({error}): pip install 'linkwise[cluster]'"
            ) from None
    return cloudpickle.dumps(value)


@lru_cache(maxsize=STUDIES_KEPT)
def _with_shared_code(mechanism: bytes, varied: tuple[str, ...]) -> lw.Mechanism:
    return pickle.loads(mechanism).parameters.with_shared_code()


@lru_cache(maxsize=STUDIES_KEPT)
def _unpickled(recipe: bytes) -> Study:
    return pickle.loads(recipe)


def computed(recipe: Any, first: int, count: int, asked_by: str) -> tuple[dict[str, np.ndarray], list[Any]]:
    """Arrays of some cases, and the warnings raised: the task of a worker.  Other processes get the study as a pickle.

    Processes other than ``asked_by`` use one thread per task, since they run several tasks at a time.
    """
    if asked_by != this_process() and lw.codegen.get_num_threads() != 1:
        lw.codegen.set_num_threads(1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        arrays = (_unpickled(recipe) if isinstance(recipe, bytes) else recipe).arrays(first, count)
    return arrays, [(warning.category, str(warning.message)) for warning in caught]
