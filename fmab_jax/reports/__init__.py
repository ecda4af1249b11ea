"""One page of everything that results say: content, the study file, the page."""
