"""Wingspan."""
