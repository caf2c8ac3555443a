"""The modules that a first call of forward dynamics runs through: ``python -m tools.walk``, or with ``--cold``.

A module counts if one of its functions runs between the call and its result, in a fresh process; with code on disk, or
with an empty cache (``--cold``).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

CODE = """
import sys
import numpy as np
import linkwise as lw
import linkwise.compiler.pipeline  # what runs while modules are imported is no part of the walk

arm, seen = lw.mechanisms.puma560(), {}
zero = np.zeros(6)

def note(frame, event, argument):
    name = frame.f_globals.get("__name__", "")
    if event == "call" and name.startswith("linkwise") and frame.f_code.co_name != "<module>":
        seen.setdefault(name)

sys.setprofile(note)
lw.forward_dynamics(arm, zero, zero, zero)
sys.setprofile(None)
print(*seen, sep="\\n")
"""


def walk(cold: bool) -> list[str]:
    """Names of modules with a function that runs, in order."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LINKWISE_CACHE_DIR": folder}
        for _ in range(1 if cold else 2):
            command = [sys.executable, "-W", "ignore", "-c", CODE]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cold", action="store_true", help="nothing on disk")
    names = walk(parser.parse_args().cold)
    print(*names, f"{len(names)} modules", sep="\n")


if __name__ == "__main__":
    main()
