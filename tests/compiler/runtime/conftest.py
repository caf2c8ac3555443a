import gc

import pytest


@pytest.fixture(autouse=True)
def what_other_tests_left_is_not_searched_for_garbage():
    gc.freeze()
    yield
    gc.unfreeze()
