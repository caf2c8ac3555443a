"""XML text with all digits of numbers."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np


def element(parent: ElementTree.Element | None, tag: str, /, **attributes: Any) -> ElementTree.Element:
    """A new child element; attributes that are None are omitted, ``class_`` becomes ``class``."""
    texts = {key.rstrip("_"): text(value) for key, value in attributes.items() if value is not None}
    return ElementTree.Element(tag, texts) if parent is None else ElementTree.SubElement(parent, tag, texts)


def text(value: Any) -> str:
    """Numbers with all their digits, truth values in lower case, strings unchanged."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    return " ".join(_number(x) for x in np.ravel(value).tolist())


def _number(x: float) -> str:
    return str(int(x)) if isinstance(x, int) or (math.isfinite(x) and x == int(x) and abs(x) < 1e15) else repr(x)


def document(root: ElementTree.Element) -> str:
    """The whole text, indented."""
    ElementTree.indent(root)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"
