"""The claims ledger: what documents claim, computed again from the dataset, with the verdict that follows."""

from pipeline.check.claims.ledger import claim_frames

__all__ = ["claim_frames"]
