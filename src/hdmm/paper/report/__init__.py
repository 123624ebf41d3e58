"""How results are shown: tables in the terminal, CSV files and pictures."""
