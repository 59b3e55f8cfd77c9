"""Check: gates that refuse invalid rows, the proof that no row was lost, and rules that flag what
looks wrong.
"""
