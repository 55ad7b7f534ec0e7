"""A recognizer as a part of other libraries."""
