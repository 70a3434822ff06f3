//! Nova's versioned objects on the wire: requests in, selections out.
