"""What acts on a mechanism besides gravity: springs, dampers, stops, actuators, contact.  One law per file; ``law.py``
is the one way by which all of them act."""
