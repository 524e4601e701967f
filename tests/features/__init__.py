"""One row of the feature and report lists, one test. Each fails when its rule is switched off; it says which."""
