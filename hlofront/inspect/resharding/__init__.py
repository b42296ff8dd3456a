"""The places where XLA changes how a value is split over devices, and what would avoid it.

`propagation` reads the splits that Shardy chose, `places` finds where neighbors disagree, `report`
holds the result, `cures` tries other specs.
"""
