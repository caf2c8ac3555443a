"""Files besides those of mechanisms, which ``linkwise.load`` reads: tables, meshes, motions, and warnings of
loading.
"""

from .dynamics.tables import check_units, in_degrees, in_radians, read_table, write_table
from .mechanism import InertiaWarning, Look, MissingConstraintWarning, Note, OmissionWarning
from .mechanism.dh_tables import DHTable, dh_table
from .motion.trajectory import load_trajectory
from .readers import load_dh, load_srdf
from .readers.meshes import Surface, load_mesh
from .trajectories.files import load_motion

__all__ = [
    "DHTable",
    "InertiaWarning",
    "Look",
    "MissingConstraintWarning",
    "Note",
    "OmissionWarning",
    "Surface",
    "check_units",
    "dh_table",
    "in_degrees",
    "in_radians",
    "load_dh",
    "load_mesh",
    "load_motion",
    "load_srdf",
    "load_trajectory",
    "read_table",
    "write_table",
]
__dir__ = __all__.copy
