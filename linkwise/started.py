"""When this process began to import the package: sources that changed since then are not the code that runs."""

import time

STARTED = time.time()
