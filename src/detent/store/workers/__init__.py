"""Workers, and the services that they share."""
