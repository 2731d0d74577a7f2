"""The commands of `detent`, by noun. `COMMANDS` in `cli/main.py` lists them."""
