"""The documentation site: `make docs`.  What is special about it is in tools/site."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = str(Path(__file__).parents[1])
sys.path.insert(0, ROOT)
os.environ["PYTHONPATH"] = ROOT  # of the kernels that run notebooks

import linkwise  # noqa: E402 - this tree, not one that is installed

project = "linkwise"
author = "The linkwise developers"
copyright = "2026, the linkwise authors"
version = release = linkwise.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton", "tools.site"]
exclude_patterns = ["_build", "README.md"]

# Pages
myst_enable_extensions = ["dollarmath", "amsmath", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = True
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True
nb_execution_show_tb = True
nb_merge_streams = True

html_math_renderer = "mathml"  # of tools/site: browsers draw it without scripts and without a network
smartquotes = False  # three dots and quotation marks are code as often as not

# Reference
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = False  # signatures may be others than those of the source: tools/site writes them
add_module_names = False
maximum_signature_line_length = 100
toc_object_entries = True
toc_object_entries_show_parents = "hide"
suppress_warnings = ["ref.python"]  # a class that is public where it is used and where joints are written: Motion

# Looks
html_theme = "pydata_sphinx_theme"
html_title = f"linkwise {version}"
html_static_path = ["_static"]
html_css_files = ["linkwise.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "linkwise"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "tango",
}
html_sidebars = {page: [] for page in ("index", "generated/gallery/index", "generated/examples")}
