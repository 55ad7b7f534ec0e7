"""The search for better settings: its space and its trials."""
