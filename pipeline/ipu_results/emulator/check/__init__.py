"""Score the emulator against published figures: rows, baselines and errors. Only `validate-emulator` imports it."""
