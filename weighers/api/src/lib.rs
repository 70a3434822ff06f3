//! The weigher contract: flat columns over candidate hosts in, one number a host out
