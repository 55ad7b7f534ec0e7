"""One module per command, imported when called."""
