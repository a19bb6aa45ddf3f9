"""Re-ranking: the nearest items by Hamming distance, put in order of a finer score."""
