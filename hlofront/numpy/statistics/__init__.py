"""Reductions: sums, moments, quantiles, histograms."""
