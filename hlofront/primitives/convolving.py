"""Convolutions of any rank, stride, dilation and grouping."""
