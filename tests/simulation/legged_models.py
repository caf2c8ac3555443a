"""Small robots in MJCF, shaped like those of reinforcement learning: a hopper, a walker, an ant and a humanoid."""

from __future__ import annotations

import warnings

import linkwise as lw

FLOOR = '<geom name="floor" type="plane" size="20 20 1" conaffinity="1" friction="{friction}"/>'
PLANAR = (
    '<joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>'
    '<joint name="pitch" type="hinge" axis="0 1 0"/>'
)
DEFAULTS = """<default><geom contype="1" conaffinity="0" condim="3" density="{density}" margin="{margin}"/>
  <joint armature="{armature}" damping="{damping}" limited="false"/></default>"""


def _leg(side: str, friction: float, at: str) -> str:
    return f"""<body name="{side}thigh" pos="{at}"><joint name="{side}hip" type="hinge" axis="0 -1 0" range="-100 40"
        limited="true"/><geom type="capsule" fromto="0 0 0 0 0 -.45" size=".05"/>
      <body name="{side}shin" pos="0 0 -.45"><joint name="{side}knee" type="hinge" axis="0 -1 0" range="-130 0"
          limited="true"/><geom type="capsule" fromto="0 0 0 0 0 -.5" size=".04"/>
        <body name="{side}foot" pos="0 0 -.5"><joint name="{side}ankle" type="hinge" axis="0 -1 0" range="-45 45"
            limited="true"/><geom type="capsule" fromto="-.1 0 -.06 .2 0 -.06" size=".06" friction="{friction}"/>
        </body></body></body>"""


def _model(step: float, body: str, **numbers: float) -> str:
    settings = {"density": 1000.0, "margin": 0.001, "armature": 1.0, "damping": 1.0, "friction": 1.0} | numbers
    return (
        f'<mujoco><compiler angle="degree"/><option timestep="{step}"/>{DEFAULTS.format(**settings)}<worldbody>'
        f"{FLOOR.format(**settings)}{body}</worldbody></mujoco>"
    )


HOPPER = _model(
    0.002,
    f"""<body name="torso" pos="0 0 1.25">{PLANAR}<geom type="capsule" fromto="0 0 .2 0 0 -.2" size=".05"/>
    {_leg("", 2.0, "0 0 -.2")}</body>""",
)
WALKER = _model(
    0.002,
    f"""<body name="torso" pos="0 0 1.25">{PLANAR}<geom type="capsule" fromto="0 0 .2 0 0 -.2" size=".05"/>
    {_leg("right_", 0.9, "0 0 -.2")}{_leg("left_", 1.9, "0 0 -.2")}</body>""",
    damping=0.1,
    armature=0.01,
)


def _ant_leg(name: str, x: int, y: int, middle: int) -> str:
    limits = "30 70" if middle > 0 else "-70 -30"
    return f"""<body name="{name}_leg"><geom type="capsule" fromto="0 0 0 {0.2 * x} {0.2 * y} 0" size=".08"/>
      <body name="{name}_hip" pos="{0.2 * x} {0.2 * y} 0"><joint name="{name}_hip" type="hinge" axis="0 0 1"
          range="-30 30" limited="true"/><geom type="capsule" fromto="0 0 0 {0.2 * x} {0.2 * y} 0" size=".08"/>
        <body name="{name}_ankle" pos="{0.2 * x} {0.2 * y} 0"><joint name="{name}_ankle" type="hinge"
            axis="{-y} {x} 0" range="{limits}" limited="true"/>
          <geom type="capsule" fromto="0 0 0 {0.4 * x} {0.4 * y} 0" size=".08"/></body></body></body>"""


ANT = _model(
    0.01,
    f"""<body name="torso" pos="0 0 .75"><freejoint name="root"/><geom type="sphere" size=".25"/>
    {_ant_leg("a", 1, 1, 1)}{_ant_leg("b", -1, 1, -1)}{_ant_leg("c", -1, -1, -1)}{_ant_leg("d", 1, -1, 1)}</body>""",
    density=5.0,
    margin=0.01,
).replace(
    "</mujoco>",
    "<actuator>"
    + "".join(
        f'<motor joint="{leg}_{joint}" gear="150" ctrlrange="-1 1"/>' for leg in "abcd" for joint in ("hip", "ankle")
    )
    + "</actuator></mujoco>",
)


def _arm(side: str, y: int) -> str:
    return f"""<body name="{side}_arm" pos="0 {0.17 * y} .06"><joint name="{side}_shoulder" type="hinge" axis="0 1 0"
        range="-85 60" limited="true"/><geom type="capsule" fromto="0 0 0 .16 {0.16 * y} -.16" size=".04"/>
      <body name="{side}_forearm" pos=".18 {0.18 * y} -.18"><joint name="{side}_elbow" type="hinge" axis="0 -1 {y}"
          range="-90 50" limited="true"/><geom type="capsule" fromto="0 0 0 .16 {-0.16 * y} .16" size=".03"/>
        <geom type="sphere" size=".04" pos=".18 {-0.18 * y} .18"/></body></body>"""


def _human_leg(side: str, y: int) -> str:
    return f"""<body name="{side}_thigh" pos="0 {0.1 * y} -.3"><joint name="{side}_hip_x" type="hinge" axis="1 0 0"
        range="-25 25" limited="true"/><joint name="{side}_hip_y" type="hinge" axis="0 1 0" range="-110 20"
        limited="true"/><geom type="capsule" fromto="0 0 0 0 0 -.34" size=".06"/>
      <body name="{side}_shin" pos="0 0 -.4"><joint name="{side}_knee" type="hinge" axis="0 -1 0" range="-160 -2"
          limited="true"/><geom type="capsule" fromto="0 0 0 0 0 -.3" size=".05"/>
        <geom type="sphere" size=".075" pos="0 0 -.35"/></body></body>"""


HUMANOID = _model(
    0.003,
    f"""<body name="torso" pos="0 0 1.4"><freejoint name="root"/>
    <geom type="capsule" fromto="0 -.07 0 0 .07 0" size=".07"/><geom type="sphere" size=".09" pos="0 0 .19"/>
    <geom type="capsule" fromto="0 -.06 -.2 0 .06 -.2" size=".06"/>
    {_human_leg("right", -1)}{_human_leg("left", 1)}{_arm("right", -1)}{_arm("left", 1)}</body>""",
    armature=0.02,
    damping=1.0,
)
MODELS = {"hopper": HOPPER, "walker": WALKER, "ant": ANT, "humanoid": HUMANOID}


def load(name: str) -> lw.Mechanism:
    """A model without its summary of what does not act."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.files.OmissionWarning)
        return lw.load(MODELS[name])
