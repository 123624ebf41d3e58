"""OPT_0: the best strategy over the cells of one attribute."""
