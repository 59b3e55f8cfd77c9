"""Submissions: make a bundle of measured figures, check one that another person made, and lay it in
`raw/`.

Everything in a bundle is data of a stranger: it is read with limits, and nothing of it is executed,
followed or opened.
"""
