"""Master and worker over one gRPC stream: generated messages, translation, and a thin transport."""
