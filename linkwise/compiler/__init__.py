"""The compiler: programs, passes, targets, loaders; ``pipeline.py`` joins them to the mechanics."""
