"""The source documents: the catalogue of sidecars, and the download of one document."""
