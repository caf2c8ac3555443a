"""One link and the joint that moves it: its numbers, joint kinematics, transitions in both directions."""
