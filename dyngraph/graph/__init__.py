"""The backward graph and its Engine; knows no operator and no array library."""
