"""Panels of Ebbtide for Horizon."""

# That of Cargo.toml; a test compares the two.
__version__ = "0.2.0"
