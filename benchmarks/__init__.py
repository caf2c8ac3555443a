"""Scripts that print a ratio; ``speed``: times of kernels, the machine's peak, other libraries beside linkwise."""
