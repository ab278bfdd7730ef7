"""An OpenAI-compatible server in front of another one: prompts that are too long are shortened on their way."""
