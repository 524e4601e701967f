pytest_plugins = ["tests.servers", "tests.drills.sizes"]
