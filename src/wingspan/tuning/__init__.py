"""The search for better settings: what is tried, and how the search runs."""
