"""Experiments: the plan, the runs, the tables of results."""
