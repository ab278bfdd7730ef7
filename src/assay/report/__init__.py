"""The report: a static site from stored runs, an index and one page per study; works offline."""
