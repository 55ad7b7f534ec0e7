"""Experiments without tensors: the plan, what is done already, what comes next, and the tables."""
