"""Rollouts: fixed steps of many motions at once, the loop over time inside the machine code, and their derivatives."""
