"""The gather primitive: reads at computed positions, and what happens out of bounds."""
