"""The ledger: a SQLite file that says what was granted, reserved and published, for one privacy unit.

A release is reserved, durably, before its noise is drawn. From then on it is charged for good, published or not: once
noise may have been drawn, nothing can be refunded. How releases add up is in `composition`, what they leak together in
`leakage`, and why that is so in docs/privacy.md.

Each entry holds the hash of its content and of the entry before, beginning with the grant. Damage, and edits of single
rows, are found whenever the ledger is read. A chain cannot reveal an older copy of the file, or one that was rewritten
from the beginning: to see that too, note elsewhere the hash that `verify` reports. Nothing about the data is stored.

The grant can be raised, by an entry of its own. Each release is held to what was granted before its entry, and all of
them to the total.
"""

from hdmm.privacy.ledger.account import Entry, Grant
from hdmm.privacy.ledger.chain import FORMAT
from hdmm.privacy.ledger.composition import Amount
from hdmm.privacy.ledger.leakage import Leak
from hdmm.privacy.ledger.ledger import AlreadyPublished, Ledger, Verified

__all__ = ["FORMAT", "AlreadyPublished", "Amount", "Entry", "Grant", "Leak", "Ledger", "Verified"]
