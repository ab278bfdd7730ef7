"""Programs on top of the methods: a reader of documents, and a server that shortens long prompts."""
