"""A model folder for Wingspan, in `model`. There is no code here: `wingspan.load()` finds the folder and reads it."""
