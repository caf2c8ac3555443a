"""Kinematics on its own: rotations and poses (``so3``, ``se3``), and configurations for what frames are to reach."""
