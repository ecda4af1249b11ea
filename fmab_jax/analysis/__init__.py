"""What results say: bands, bounds, summaries."""
