//! A real scheduler from outside: advice, attacks, the console, questions, REST, and the API on an
//! OpenStack.

// All of this is tests; helpers too may fail loudly.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod advice;
mod attacks;
mod bills;
mod console;
mod curl;
mod openstack;
mod questions;
mod region;
mod rest;

use crate::curl::HttpService;
use crate::region::Region;
use std::net::SocketAddr;

impl HttpService for Region {
    fn address(&self) -> SocketAddr {
        self.grpc
    }
}
