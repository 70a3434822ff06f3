//! Configuration files as oslo.config reads them.
