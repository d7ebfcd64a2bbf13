"""What the drivers need from the world, as Protocols with the nouns and the errors they speak in.

A port knows no technology; adapters implement it, and one contract suite holds all of them to it.
"""
