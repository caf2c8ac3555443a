import gc

import pytest


@pytest.fixture(autouse=True, scope="package")
def garbage_is_looked_for_when_all_have_run():
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def what_other_tests_left_is_not_searched_for_garbage(garbage_is_looked_for_when_all_have_run):
    gc.freeze()
