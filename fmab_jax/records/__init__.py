"""What a study says: its problem, and the rows of its privacy ledger."""
