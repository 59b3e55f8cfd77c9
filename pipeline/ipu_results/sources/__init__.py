"""The source documents: the catalogue of sidecars, and downloads beside our transcriptions."""
