"""Force elements besides gravity: springs, dampers, stops, actuators, contact. One law per file; ``law.py`` has their
protocol.
"""
