"""The source documents: the catalogue of sidecars, and downloads next to our transcriptions."""

RETRIES = 4  # further tries after a temporary failure; with doubled pauses they span 7 s
TIMEOUT_S = 30.0  # seconds of silence after which a try is given up
