"""What `./check` runs, how it shows progress, and what it reports at the end."""
