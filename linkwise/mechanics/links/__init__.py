"""One link and the joint that moves it: parameters, joint kinematics, transitions in both directions."""
