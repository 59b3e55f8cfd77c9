"""Generate documents with known figures in many dialects of HTML and PDF, and judge how they are
read.
"""
