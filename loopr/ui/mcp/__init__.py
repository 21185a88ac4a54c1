"""The surface for agents: the questions and the wishes of the command line as tools of the Model Context Protocol.

`tools` says what there is, `server` puts it on standard input and output. Must never decide anything.
"""
