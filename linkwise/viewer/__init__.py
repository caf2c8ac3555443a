"""Pictures of mechanisms and their motions; needs matplotlib: pip install 'linkwise[plot]'.

``scene`` returns the visuals of a mechanism as plain data, and needs nothing.  Every other function returns a figure
without showing it, and writes it to ``path`` if given: vectors for .svg and .pdf, dots for .png.
"""

from .animation import animate
from .drawing import draw, snapshots
from .instant_centers import plot_instant_centers
from .linear import plot_bode, plot_eigenvalues, plot_step
from .modes import plot_modes
from .pages import Page, page
from .ranges import plot_range, plot_workspace
from .scene import Part, Scene, scene
from .trajectory import plot_trajectory

__all__ = [
    "Page",
    "Part",
    "Scene",
    "animate",
    "draw",
    "page",
    "plot_bode",
    "plot_eigenvalues",
    "plot_instant_centers",
    "plot_modes",
    "plot_range",
    "plot_step",
    "plot_trajectory",
    "plot_workspace",
    "scene",
    "snapshots",
]
__dir__ = __all__.copy
