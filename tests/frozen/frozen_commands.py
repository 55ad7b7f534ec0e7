def freeze(names): pass
