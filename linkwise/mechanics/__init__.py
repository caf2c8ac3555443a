"""The mechanics of the papers: operator expressions, recursions over links, joints, spatial algebra, scalars.

Written for one state and independent of machines: scalars are numbers or symbols, which the code does not distinguish.
"""
