"""The public array functions: trees, derivatives, closed mechanisms, diagonalized dynamics, DeNOC, identification."""
