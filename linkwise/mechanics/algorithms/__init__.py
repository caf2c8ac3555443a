"""Named results of tree dynamics, each a few sweeps over the links."""
