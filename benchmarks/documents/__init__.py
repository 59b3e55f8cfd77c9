"""Documents with known figures in many dialects of HTML and PDF: exact, reported or silently wrong?"""
