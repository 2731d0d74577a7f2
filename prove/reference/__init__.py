"""The reference model: what every verb must do, in plain Python without a database, and dumps to compare with it."""
