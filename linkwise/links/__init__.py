"""One link and the joint that moves it: its numbers, its crossing at a state, and its transitions in both directions."""
