"""What the functions of hlofront.numpy are written with."""
