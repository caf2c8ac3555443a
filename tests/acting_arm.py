"""An arm on which springs, damping, a stop, a servo, a filter and contact act, and states in which they all do."""

import warnings

import numpy as np

import linkwise as lw

TEXT = """<mujoco model="arm"><compiler angle="radian"/><worldbody><geom type="plane" size="1 1 1" pos="0 0 -.3"/>
  <body name="upper"><joint name="shoulder" axis="0 1 0" damping="0.5" stiffness="2"/>
    <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" contype="0" conaffinity="0"/>
    <body name="fore" pos="0.4 0 0"><joint name="elbow" axis="0 1 0" range="-2 0.25"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/></body></body></worldbody>
  <actuator><position name="servo" joint="shoulder" kp="80" kv="6"/>
    <general name="lagged" joint="elbow" gear="4" dyntype="filter" dynprm="0.1" ctrlrange="-1 1"/></actuator>
</mujoco>"""
with warnings.catch_warnings():
    warnings.simplefilter("ignore", lw.files.OmissionWarning)
    ARM = lw.load(TEXT).with_contact(stiffness=1e3)
Q = np.array([[0.2, 0.1], [0.55, -0.2], [0.6, 0.3]])  # free; on the ground; there, and beyond the stop
V, TAU, CTRL, ACTIVATION = np.array([0.2, -0.1]), np.array([0.1, 0.2]), np.array([0.2, 0.3]), np.array([0.1])
