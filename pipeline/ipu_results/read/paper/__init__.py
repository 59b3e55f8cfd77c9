"""Read the tables of a paper: terms shared with the PDF reader, and the reader of its plain text."""
