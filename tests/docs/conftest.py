"""What blocks of pages register is forgotten afterwards."""

from __future__ import annotations

import pytest

import linkwise as lw
from linkwise import cli
from linkwise.compiler import known_targets
from linkwise.mechanics import joints
from linkwise.mechanics.algorithms import catalogue, integration
from linkwise.mechanics.operators import RECORDS
from linkwise.readers import protocol

TABLES = (
    *(RECORDS, joints.KINDS, known_targets._WRITTEN, known_targets._RUNNING, integration.METHODS, protocol.FORMATS),
    *(catalogue.ALGORITHMS, cli.commands.commands),
)


@pytest.fixture
def restored_tables():
    """The tables of the package as they are without a page; its own readers register when first needed."""
    lw.load("<robot name='one'><link name='base'/></robot>")
    before = [dict(table) for table in TABLES]
    yield
    for table, content in zip(TABLES, before, strict=True):
        table.clear()
        table.update(content)
