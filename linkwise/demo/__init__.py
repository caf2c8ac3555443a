"""The exhibits of ``linkwise demo``, their pictures and their page."""
