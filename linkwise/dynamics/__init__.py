"""The public array functions: trees, derivatives, diagonalized dynamics, DeNOC, identification."""
