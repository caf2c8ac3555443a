"""One link and the joint that moves it: its numbers, its crossing at a state, its transitions in both directions."""
