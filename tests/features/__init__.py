"""One row of the feature and report lists, one test. Each fails when its rule is switched off; it says which.

The letters are rows of our lists: F features of such systems, and public reports of what went wrong with them, A of
engines, approval systems and streams, B of agent frameworks. A row that another test shows already has its id there.
"""
