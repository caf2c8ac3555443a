"""The random trees of tests/physics; the large ones take their time here and are left to ``make test-all``."""

from __future__ import annotations

import pytest

from tests.physics.trees import CASES, tree_of

every_tree = pytest.mark.parametrize(
    "tree",
    [
        pytest.param(
            lambda case=case: tree_of(*case),
            marks=[pytest.mark.slow] if case[0] > 8 else [],
            id="-".join(map(str, case)),
        )
        for case in CASES
    ],
)
