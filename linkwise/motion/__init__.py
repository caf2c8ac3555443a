"""Motion in time: systems of any mechanism in any coordinates, adaptive and fixed steps, events, trajectories."""
