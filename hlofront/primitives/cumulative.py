"""Running sums, products, extrema and logsumexp along an axis."""
