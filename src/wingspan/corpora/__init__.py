"""Corpora: files in any format to documents and back, words, sentences and windows, leaks, lexicons, label maps."""

from wingspan.corpora.formats import read, write

__all__ = ["read", "write"]
