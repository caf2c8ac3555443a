"""From machine code to functions of arrays: loading, the cache on disk, ufuncs, threads, GPUs."""
