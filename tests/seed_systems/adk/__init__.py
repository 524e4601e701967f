"""ADK-Rust: its checkpoint on the wire, and its scripts in the hands of real workers."""
