"""A front loader dragged by its bucket, as the viewer in the browser does it, loops closed.

python examples/25_view.py [folder for pictures]          the configurations, and a picture
python examples/25_view.py --browser                      the same in the browser, to drag it yourself
"""

import sys
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.viewer.browser import Hand, Session

loader = lw.mechanisms.loader()
if "--browser" in sys.argv:
    lw.view(loader).wait()
    raise SystemExit

# What the page computes when the mouse takes the bucket at a point and pulls it along a line.
session = Session(loader)
hand = Hand("bucket", np.array([0.2, 0.0, 0.0]))
start = hand.position(loader, session.q)
configurations, gap, missing = [session.q], 0.0, 0.0
for share in np.linspace(0.0, 1.0, 20):
    reached = session.drag(hand, start + share * np.array([-0.2, 0.9, 0.0]))
    configurations.append(session.q)
    gap, missing = max(gap, session.gap), max(missing, reached.distance)
print(f"loops are open by {gap:.1e}, the hand misses its way by {missing:.1e} m")

# Far away: it goes as near as it can, says so, and stays on its branch.
session.drag(hand, [8.0, 2.0, 0.0])
print(session.status)

file = Path(sys.argv[1] if len(sys.argv) > 1 else "demo") / "25_view.png"
file.parent.mkdir(exist_ok=True)
lw.viewer.snapshots(loader, np.array(configurations[:: len(configurations) // 4]), path=file)
print(f"picture: {file}")
