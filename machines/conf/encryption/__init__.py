"""Encryption of what the database keeps for the product's own use: secrets, and what waits for an approval."""
