from hypothesis import settings

# A busy machine is no failure: no property here is about time.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
