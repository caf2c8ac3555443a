"""``python -m linkwise`` is the command ``linkwise``."""

import sys

from .cli import main

sys.exit(main())
