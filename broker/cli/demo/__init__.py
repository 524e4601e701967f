"""The demo: a support desk whose agents pause in one process, are answered in another and go on in a third."""
