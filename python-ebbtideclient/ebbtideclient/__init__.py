"""Client library of Ebbtide's REST API."""

# That of Cargo.toml; a test compares the two.
__version__ = "0.2.0"
