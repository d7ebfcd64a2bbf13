"""What a cluster needs of an account: planned against what is there, made, checked and removed."""
