"""Reading and updating arrays by indices and masks."""
