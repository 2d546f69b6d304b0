//! `Address`: a `Peer` in half the memory.

use crate::peer::Peer;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};

#[derive(Debug, Hash)]
pub(super) enum Address {
    V4(SocketAddrV4),
    V6(Box<SocketAddrV6>),
    Local,
}

impl Address {
    pub(super) fn peer(&self) -> Peer {
        match self {
            Self::V4(address) => Peer::Tcp(SocketAddr::V4(*address)),
            Self::V6(address) => Peer::Tcp(SocketAddr::V6(**address)),
            Self::Local => Peer::Local,
        }
    }
}

impl From<Peer> for Address {
    fn from(peer: Peer) -> Self {
        match peer {
            Peer::Tcp(SocketAddr::V4(address)) => Self::V4(address),
            Peer::Tcp(SocketAddr::V6(address)) => Self::V6(Box::new(address)),
            Peer::Local => Self::Local,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_small_and_gives_its_peer_back() {
        assert!(size_of::<Address>() <= 16);
        for text in ["10.0.0.1:80", "[2001:db8::1]:443"] {
            let peer = Peer::Tcp(text.parse().unwrap());
            assert_eq!(Address::from(peer.clone()).peer(), peer);
        }
        assert_eq!(Address::from(Peer::Local).peer(), Peer::Local);
    }
}
