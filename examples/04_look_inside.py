"""What a kernel consists of: its sweeps, its operations, its source; and how it grows with the mechanism.

python examples/04_look_inside.py [folder for pictures]
"""

import ctypes
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
STYLES = {  # told apart by colour-blind readers too
    "inverse_dynamics": ("#0072B2", "o", "-"),
    "forward_dynamics": ("#D55E00", "s", "--"),
    "mass_matrix": ("#009E73", "^", "-."),
}


def show(mech: lw.Mechanism) -> None:
    kernel = lw.compile("forward_dynamics", mech)
    print(kernel)
    print("\nplan:")
    print(kernel.plan())
    print("\noperations per state:", kernel.op_counts)
    general = lw.compile("forward_dynamics", mech, parameters=("mass", "com", "inertia", "pose", "gravity"))
    print("with every number of the arm an input:", general.op_counts)
    print("\nfrom the middle of the program:")
    program = kernel.ir().splitlines()
    print("\n".join(program[len(program) // 2 :][:6]))
    print("\nbeginning of the arithmetic in C:")
    lines = kernel.source("c").splitlines()
    first = next(i for i, line in enumerate(lines) if "base to tip" in line)
    print("\n".join(lines[first : first + 8]))


def compile_exported(mech: lw.Mechanism) -> None:
    """Write the C file, compile it with the system's compiler, and compare."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        print("\nno C compiler on this machine: the exported file is not compiled")
        return
    with tempfile.TemporaryDirectory() as folder:
        source = lw.export_c("forward_dynamics", mech, Path(folder) / "forward_dynamics.c")
        library = source.with_suffix(".so")
        subprocess.run([compiler, "-std=c99", "-O2", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
        function = ctypes.CDLL(str(library)).forward_dynamics_batch
        rng = np.random.default_rng(0)
        q, v = lw.random_state(mech, rng, (1000,))
        tau, a = rng.normal(size=v.shape), np.empty_like(v)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (q, v, tau, a)]
        function(ctypes.c_size_t(len(q)), *pointers)
        error = np.abs(a - lw.forward_dynamics(mech, q, v, tau)).max() / np.abs(a).max()
        print(f"\nexported C, compiled with {Path(compiler).name}: relative difference over 1000 states {error:.0e}")


def draw_growth(path: Path, lengths=(2, 4, 8, 12, 16, 20, 24, 28, 32)) -> None:
    """Operations against the number of links, for chains with general geometry."""
    figure, axes = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
    print("\noperations per state of a general chain")
    print(f"{'links':18}" + "".join(f"{n:8}" for n in lengths))
    for name, (colour, marker, line) in STYLES.items():
        # The interpreter as target: counting needs no machine code.
        kernels = [lw.compile(name, lw.mechanisms.chain(n), target="numpy") for n in lengths]
        counts = [sum(kernel.op_counts.values()) for kernel in kernels]
        print(f"{name:18}" + "".join(f"{count:8}" for count in counts))
        axes.plot(lengths, counts, color=colour, marker=marker, linestyle=line, label=name.replace("_", " "))
    axes.set(xlabel="links of the chain", ylabel="scalar operations per state", xlim=(0, None), ylim=(0, None))
    axes.set_title("Recursions grow with N, the mass matrix with N squared")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(f"picture: {path}")


if __name__ == "__main__":
    puma = lw.mechanisms.puma560()
    show(puma)
    compile_exported(puma)
    FOLDER.mkdir(parents=True, exist_ok=True)
    draw_growth(FOLDER / "04_growth.png")
