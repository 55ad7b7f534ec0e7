"""What a model does and why, from collected rows and from documents: tables first, then figures, then one page."""
