//! Keystone, Placement and Nova's API over HTTP.
