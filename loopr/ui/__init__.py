"""Ui shows: every surface draws the same rows and sends the same requests.

Knows people, terminals and browsers. Must never decide anything, nor know another surface.
"""
