"""Named results of tree and constrained dynamics, each a few sweeps over the links."""
