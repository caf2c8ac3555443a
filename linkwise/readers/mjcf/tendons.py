"""Equalities of fixed tendons, whose lengths are linear in joint coordinates: couplings of a mechanism."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from linkwise.mechanism import Builder
from linkwise.mechanism.checks import did_you_mean
from linkwise.readers.mjcf.equalities import coefficients
from linkwise.readers.mjcf.tree import unused
from linkwise.readers.protocol import Element, omit

_NOT_READ = "equalities of this kind are not read"


def add_couplings(
    builder: Builder, root: Element, equalities: Sequence[Element], references: Mapping[str, float]
) -> None:
    """The ``<tendon>`` equalities; ``references`` are the coordinates of hinges and slides in the file's pose.

    ``l - l0 = a0 + a1 (m - m0) + ...`` for the lengths l of the first tendon and m of the second, l0 and m0 those in
    the file's pose.
    """
    tendons = {one.attributes.get("name"): one for section in root.all("tendon") for one in section.children}
    taken: set[str] = set()
    for equality in (one for one in equalities if one.tag == "tendon"):
        names = [equality.text(key) for key in ("tendon1", "tendon2") if key == "tendon1" or key in equality.attributes]
        for name in names:
            if name not in tendons:
                known = did_you_mean(name, [one for one in tendons if one])
                raise equality.error(f"{equality.label}: there is no tendon {name!r}: {known}")
        offset, ratio, *higher = coefficients(equality)
        if any(tendons[name].tag != "fixed" for name in names):
            omit(equality, "equality of spatial tendons", _NOT_READ, constrains=True)
        elif len(names) > 1 and any(higher):
            omit(equality, "nonlinear tendon equality", _NOT_READ, constrains=True)
        else:
            ratios: dict[str, float] = {}
            for name, factor in zip(names, (1.0, -ratio), strict=False):
                for joint, coefficient in lever_arms(tendons[name], references).items():
                    ratios[joint] = ratios.get(joint, 0.0) + factor * coefficient
            total = offset + sum(arm * references[joint] for joint, arm in ratios.items())
            name = equality.attributes.get("name") or unused("_".join(["tendon", *names]), taken)
            builder.coupling(name, ratios, total)


def lever_arms(tendon: Element, joints: Collection[str]) -> dict[str, float]:
    """How the length of a fixed tendon changes with each joint; ``joints`` are all hinges and slides."""
    arms: dict[str, float] = {}
    for part in tendon.all("joint"):
        joint = part.text("joint")
        if joint not in joints:
            raise part.error(f"{part.label}: there is no hinge or slide {joint!r}: {did_you_mean(joint, joints)}")
        arms[joint] = arms.get(joint, 0.0) + part.number("coef")
    return arms
