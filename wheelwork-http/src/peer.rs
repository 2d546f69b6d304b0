//! `Peer`: the other end of a connection.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The other end of a connection.
///
/// ```
/// use wheelwork_http::Peer;
///
/// let peer = Peer::from("127.0.0.1:80".parse::<std::net::SocketAddr>()?);
/// assert_eq!(peer.address().unwrap().port(), 80);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Peer {
    /// A TCP connection.
    Tcp(SocketAddr),
    /// A connection without an address, such as that of a Unix socket.
    Local,
}

impl Peer {
    /// The address of a TCP connection.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Local => None,
        }
    }

    /// What [`connections_per_address`](crate::Limits::connections_per_address) counts by.
    pub(crate) fn host(&self) -> Option<IpAddr> {
        match self.address()?.ip().to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                Some(Ipv6Addr::from_bits(network).into())
            }
            address => Some(address),
        }
    }
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Local => f.write_str("local"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(address: &str) -> Option<IpAddr> {
        Peer::Tcp(SocketAddr::new(address.parse().unwrap(), 1)).host()
    }

    #[test]
    fn an_address_of_ipv6_counts_with_its_network_and_a_mapped_one_as_ipv4() {
        assert_eq!(host("2001:db8:1:2:3:4:5:6"), host("2001:db8:1:2::9"));
        assert_ne!(host("2001:db8:1:2::9"), host("2001:db8:1:3::9"));
        assert_eq!(host("::ffff:10.0.0.1"), host("10.0.0.1"));
        assert_ne!(host("10.0.0.2"), host("10.0.0.1"));
    }
}
