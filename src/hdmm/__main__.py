"""``python -m hdmm`` is the command line."""

from hdmm.cli import main

main()
