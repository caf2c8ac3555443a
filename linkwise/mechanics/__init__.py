"""What the papers say: operator expressions, recursions over links, joints, spatial algebra, scalars.

Written for one state and without a machine in sight: scalars are numbers or symbols, and nothing here can tell which.
"""
