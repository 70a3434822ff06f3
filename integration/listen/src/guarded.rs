//! A connection with deadlines.

use crate::limits::{Deadlines, Protocol};
use crate::report::CloseReason;
use crate::session::ConnectionHandle;
use ebbtide_runtime::clock;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A connection that ends when its client keeps it waiting. To its reader the end looks like the
/// client's own.
#[derive(Debug)]
pub struct GuardedConnection<Io> {
    io: Io,
    session: ConnectionHandle,
    deadlines: Deadlines,
    preface: u64,
    began: Instant,
    received: u64,
    timer: Option<Pin<Box<Sleep>>>,
    stall: Option<Pin<Box<Sleep>>>,
}

impl<Io> GuardedConnection<Io> {
    /// The deadlines begin now.
    pub fn new(
        io: Io,
        session: ConnectionHandle,
        protocol: Protocol,
        deadlines: Deadlines,
    ) -> Self {
        Self {
            io,
            session,
            deadlines,
            preface: protocol.preface(),
            began: clock::timer(),
            received: 0,
            timer: None,
            stall: None,
        }
    }

    /// When the connection ends unless something happens, and what is said of it then.
    fn deadline(&self, context: &Context<'_>) -> Option<(Instant, CloseReason)> {
        let mut now = self.session.state.lock();
        now.reader = Some(context.waker().clone());
        if let Some(why) = now.closed {
            return Some((self.began, why));
        }
        let limits = &self.deadlines;
        let next = if now.calls > 0 {
            None
        } else if now.authenticated {
            Some((now.idle_since + limits.idle, CloseReason::Idle))
        } else if now.called {
            let end = now.idle_since + limits.unauthenticated_idle;
            Some((end, CloseReason::Idle))
        } else if self.received == 0 {
            Some((self.began + limits.first_bytes, CloseReason::Silent))
        } else if self.preface == 0 || self.received < self.preface {
            Some((self.began + limits.opening, CloseReason::Silent))
        } else {
            let end = self.began + limits.unauthenticated_idle;
            Some((end, CloseReason::Silent))
        };
        let last = limits
            .longest
            .map(|longest| (self.began + longest, CloseReason::TooLong));
        [next, last]
            .into_iter()
            .flatten()
            .min_by_key(|(end, _)| *end)
    }

    /// Ready when the time is over.
    fn poll_over(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some((end, why)) = self.deadline(context) else {
            // The end of the last call wakes this reader.
            return Poll::Pending;
        };
        match &mut self.timer {
            Some(timer) if timer.deadline() == end => {}
            Some(timer) => timer.as_mut().reset(end),
            none => *none = Some(Box::pin(tokio::time::sleep_until(end))),
        }
        let over = self
            .timer
            .as_mut()
            .is_none_or(|timer| timer.as_mut().poll(context).is_ready());
        if over {
            self.session.close(why);
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Passes on what became of a write; an error if nothing was taken for too long.
    fn watched<T>(
        &mut self,
        context: &mut Context<'_>,
        done: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.stall = None;
            return done;
        }
        let stall = self
            .stall
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(Deadlines::STALL)));
        if stall.as_mut().poll(context).is_ready() {
            self.session.close(CloseReason::Stalled);
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl<Io: AsyncRead + Unpin> AsyncRead for GuardedConnection<Io> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // First the deadline: a client that sends something all the time would otherwise never meet
        // it.
        if this.poll_over(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.io).poll_read(context, buffer);
        let new = buffer.filled().len().saturating_sub(before);
        this.received = this.received.saturating_add(new as u64);
        read
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for GuardedConnection<Io> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let done = Pin::new(&mut this.io).poll_write(context, bytes);
        this.watched(context, done)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let done = Pin::new(&mut this.io).poll_write_vectored(context, buffers);
        this.watched(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let done = Pin::new(&mut this.io).poll_flush(context);
        this.watched(context, done)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let done = Pin::new(&mut this.io).poll_shutdown(context);
        this.watched(context, done)
    }
}

#[cfg(test)]
mod tests;
