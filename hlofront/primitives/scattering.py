"""The scatter primitives: writes and accumulations at computed positions."""
