"""What AG-UI needs of a broker: hand-written for `AsyncBroker`; the blocking twin beside it is made from it."""
