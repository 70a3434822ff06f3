//! An answer that is a call in progress until its last byte is sent.

use crate::session::CallGuard;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A body that holds its call.
#[derive(Debug)]
pub struct CallBody<B> {
    body: B,
    _call: CallGuard,
}

impl<B> CallBody<B> {
    /// The call ends with the body.
    pub fn new(body: B, call: CallGuard) -> Self {
        Self { body, _call: call }
    }
}

impl<B: Body + Unpin> Body for CallBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
