"""Who is who between master and workers: a private authority and one-use join tokens."""
