from hypothesis import settings

# Two seconds for the whole folder: the same few examples every time. `--hypothesis-profile=long` looks further.
settings.register_profile("unit", max_examples=10, derandomize=True, deadline=None, database=None)
settings.register_profile("long", max_examples=1000, deadline=None)
settings.load_profile("unit")
