"""What is done with parameters."""
