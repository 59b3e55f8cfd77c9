"""What every room builds on, and nothing of its subject: README.md says what is here."""
