"""The live lab: `assay serve`. A web application on the lab's calls; it needs the extra `web`."""
