"""What `./check` runs, how it tells what it is doing, and what it says at the end."""
