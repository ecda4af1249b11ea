"""One page of everything that results say: content, the command that makes them again, the page."""
