"""Kernels as files: source code that is compiled and used without linkwise."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..mechanics.joints.protocol import QUATERNION
from ..mechanism import Body, Mechanism, MechanismError
from .kernel import Kernel
from .known_targets import emit
from .pipeline import compile
from .targets.c_expressions import RESERVED, identifier

# C++ headers must be included outside extern "C".
OPEN_FOR_CPP = """#ifdef __cplusplus
#include <math.h>
#include <stddef.h>
#define restrict __restrict
extern "C" {
#endif
"""
CLOSE_FOR_CPP = """
#ifdef __cplusplus
}
#undef restrict
#endif
"""


def export_c(
    algorithm: Any, mech: Mechanism, path: str | os.PathLike[str], name: str | None = None, **options: Any
) -> Path:
    """Write one self-contained file of C99, which is also valid C++, and return its path.

    name                 of the function, a C identifier; by default the name of the algorithm
    algorithm, options   as for ``compile``: ``dtype``, ``parameters``, required options of the algorithm (``link``,
                         ...); or a kernel of ``mech``, such as a result of ``jacobian_of``, which has its options
                         already

    The file holds ``void NAME(inputs, outputs)`` for one state and ``void NAME_batch(size_t n, inputs, outputs)`` for n
    states in contiguous rows, arrays in C order.  A comment at its head lists the coordinates of each joint in q and v.
    The code needs only the mathematical functions of the C library (link with ``-lm``).
    """
    source = c_file(algorithm, mech, name, **options)
    target = Path(path)
    target.write_text(source, encoding="utf-8")
    return target


def c_file(algorithm: Any, mech: Mechanism, name: str | None = None, **options: Any) -> str:
    """The text of the file that ``export_c`` writes."""
    if "target" in options:
        raise TypeError("export_c writes C for any machine and takes no target")
    if name is not None and (not isinstance(name, str) or identifier(name, set(RESERVED)) != name):
        raise ValueError(f"name must be a C identifier that is no reserved word, such as 'arm_dynamics', not {name!r}")
    if isinstance(algorithm, Kernel):
        kernel = _check_mechanism(algorithm, mech, options)
    else:  # Tracing suffices for the export: the interpreter as target avoids compiling machine code.
        kernel = compile(algorithm, mech, target="numpy", **options)
    program = dataclasses.replace(kernel.program, name=name or kernel.program.name)
    head = "".join(f" * {line}\n" for line in _described(kernel.name, mech))
    source = emit(program, "c", kernel.dtype.name)
    return f"/*\n{head} */\n{OPEN_FOR_CPP}{source}{CLOSE_FOR_CPP}"


def _check_mechanism(kernel: Kernel, mech: Mechanism, options: dict[str, Any]) -> Kernel:
    """Return ``kernel`` if it belongs to this mechanism; raise otherwise."""
    if options:
        raise TypeError(f"{kernel!r} is compiled already and takes no {', '.join(options)}: give that to compile")
    if any(
        (model.name, model.joint_names) != (mech.name, mech.joint_names) for model in kernel.configurations.values()
    ):
        raise MechanismError(f"{kernel!r} is of another mechanism than {mech.name!r}")
    return kernel


def _described(algorithm: str, mech: Mechanism) -> Iterator[str]:
    """Lines of a C comment with the name of the mechanism and the indices of each joint's coordinates in q and v."""
    yield f"{algorithm} of mechanism {_quoted(mech.name)}, written by linkwise"
    yield "joints in order, with their places in q and v, and the links they move:"
    for body in mech.bodies:
        slices = (
            f"{array}[{at.start}]" if at.stop - at.start == 1 else f"{array}[{at.start}..{at.stop - 1}]"
            for array, at in (("q", mech.q_index(body.joint)), ("v", mech.v_index(body.joint)))
        )
        follows = f", follows {_quoted(body.mimic.joint)}" if body.mimic else ""
        kind = type(body.kind).__name__.lower()
        yield f"  {' '.join(slices)} {_quoted(body.joint)} ({kind}{follows}) moves {_quoted(body.link)}"
        if body.kind.nq > 1 and not body.mimic:
            yield f"    {_order(mech, body)}"


def _order(mech: Mechanism, body: Body) -> str:
    """Layout of a joint with several coordinates: "q: x y angle; v: x y angle"."""
    at = {"q": mech.q_names[mech.q_index(body.joint)], "v": mech.v_names[mech.v_index(body.joint)]}
    orders = [f"{array}: {' '.join(name[len(body.joint) + 1 :] for name in names)}" for array, names in at.items()]
    quaternion = " (a unit quaternion, scalar first; velocities along the axes of the link, angular first)"
    return "; ".join(orders) + quaternion * any(measure.of == QUATERNION for measure in body.kind.measures("q"))


def _quoted(name: str) -> str:
    """A name in plain characters that neither end a comment nor begin another."""
    return ascii(name).replace("*/", "* /").replace("/*", "/ *")
