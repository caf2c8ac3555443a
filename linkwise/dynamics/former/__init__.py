"""Public names of version 0.1 that have moved; each says where to when it is used."""
