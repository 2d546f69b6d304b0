//! `Chunk`: a chunk of a response, which tells when it was sent.

use super::ticket::Ticket;
use bytes::{Buf, Bytes};
use std::io::IoSlice;

/// A chunk of a response. On HTTP/2, h2 holds it until the client's window lets it go.
#[derive(Debug)]
pub(crate) struct Chunk<D> {
    data: D,
    debt: Option<Debt>,
}

/// Bytes that were not sent.
#[derive(Debug)]
struct Debt {
    bytes: u64,
    /// The connection is not idle before.
    ticket: Ticket,
}

impl Debt {
    fn pay(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.ticket.link().iter().for_each(|link| link.pay(bytes));
    }
}

impl Drop for Debt {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.ticket.link().iter().for_each(|link| link.pay(self.bytes));
        }
    }
}

impl<D: Buf> Chunk<D> {
    /// A chunk of a request without a window.
    pub(super) fn new(data: D) -> Self {
        Self { data, debt: None }
    }

    /// A chunk that counts until it is sent.
    pub(super) fn counted(data: D, ticket: &Ticket) -> Self {
        let bytes = data.remaining() as u64;
        let debt = (bytes > 0).then(|| {
            ticket.conn.allow_answers();
            ticket.link().iter().for_each(|link| link.owe(bytes));
            Debt { bytes, ticket: ticket.another() }
        });
        Self { data, debt }
    }

    fn pay(&mut self, bytes: usize) {
        if let Some(debt) = &mut self.debt {
            debt.pay(bytes as u64);
        }
    }
}

impl<D: Buf> Buf for Chunk<D> {
    fn remaining(&self) -> usize {
        self.data.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.data.chunk()
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.data.chunks_vectored(slices)
    }

    fn advance(&mut self, count: usize) {
        self.data.advance(count);
        self.pay(count);
    }

    fn copy_to_bytes(&mut self, length: usize) -> Bytes {
        let bytes = self.data.copy_to_bytes(length);
        self.pay(length);
        bytes
    }
}
