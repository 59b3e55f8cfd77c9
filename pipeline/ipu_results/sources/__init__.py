"""The source documents: the catalogue of sidecars, and downloads next to our transcriptions."""
