"""The verbs of the contract as short scripts of SQL, one file for each theme, the statements beside them."""
