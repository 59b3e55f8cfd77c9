"""The runner: re-executes an inference sweep on what is here, and appends the run as documents of its own.

`worker`, `images` and `backends` keep to the syntax of Python 3.8, the newest that PopART's wheels run under.
"""
