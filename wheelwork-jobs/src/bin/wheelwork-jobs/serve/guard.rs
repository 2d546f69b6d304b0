//! Who may ask, and who may change something.
//!
//! **Names.** A page of another site can have its own name resolved to the address of this server, and read
//! what the server answers in the browser of somebody who may reach it. So a request is answered only if it
//! names the server by an address, by `localhost`, or by a name of `--host-name`.
//!
//! **Token.** A change needs the token, in the header `Authorization: Bearer` or in the field `token` of the
//! form. No browser sends it by itself, so no other site can send a form in somebody's name.

use http::HeaderMap;
use http::header::{AUTHORIZATION, HOST};
use http::uri::Authority;
use std::net::IpAddr;
use subtle::ConstantTimeEq;

/// In characters.
pub(super) const SHORTEST_TOKEN: usize = 16;

pub(super) struct Guard {
    /// `None` allows no changes.
    token: Option<String>,
    host_names: Vec<String>,
}

impl Guard {
    pub(super) fn new(token: Option<String>, host_names: Vec<String>) -> Self {
        Self { token, host_names }
    }

    /// Whether anybody may change something.
    pub(super) fn allows_changes(&self) -> bool {
        self.token.is_some()
    }

    /// Whether the server has the name by which it is asked.
    pub(super) fn knows_host(&self, headers: &HeaderMap, authority: Option<&Authority>) -> bool {
        let header = headers.get(HOST).and_then(|host| host.to_str().ok()?.parse().ok());
        let Some(authority): Option<Authority> = header.or_else(|| authority.cloned()) else {
            return false;
        };
        let host = authority.host();
        let address = host.trim_start_matches('[').trim_end_matches(']');
        address.parse::<IpAddr>().is_ok()
            || host.eq_ignore_ascii_case("localhost")
            || self.host_names.iter().any(|name| host.eq_ignore_ascii_case(name))
    }

    /// Whether a request has the token. The time that this takes says nothing of the token but its length.
    pub(super) fn may_change(&self, headers: &HeaderMap, field: Option<&str>) -> bool {
        let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = header.and_then(|header| header.strip_prefix("Bearer ")).or(field);
        match (&self.token, given) {
            (Some(token), Some(given)) => token.as_bytes().ct_eq(given.as_bytes()).into(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn only_known_hosts_are_answered() {
        let guard = Guard::new(None, vec!["jobs.example".into()]);
        let knows = |host| guard.knows_host(&headers(HOST, host), None);
        for host in ["127.0.0.1:8170", "[::1]:8170", "localhost", "LOCALHOST:1", "jobs.example:443"]
        {
            assert!(knows(host), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "a b"]
        {
            assert!(!knows(host), "{host}");
        }
        assert!(!guard.knows_host(&HeaderMap::new(), None));
        let authority = Authority::from_static("localhost:8170");
        assert!(guard.knows_host(&HeaderMap::new(), Some(&authority)));
    }

    #[test]
    fn the_token_alone_allows_changes() {
        let guard = Guard::new(Some("0123456789abcdef".into()), vec![]);
        let none = HeaderMap::new();
        assert!(guard.may_change(&none, Some("0123456789abcdef")));
        assert!(guard.may_change(&headers(AUTHORIZATION, "Bearer 0123456789abcdef"), None));
        for wrong in ["", "0123456789abcde", "0123456789abcdeg", "0123456789abcdef0"] {
            assert!(!guard.may_change(&none, Some(wrong)));
            assert!(!guard.may_change(&headers(AUTHORIZATION, &format!("Bearer {wrong}")), None));
        }
        assert!(!guard.may_change(&none, None));
        assert!(!guard.may_change(&headers(AUTHORIZATION, "Basic 0123456789abcdef"), None));
        assert!(!Guard::new(None, vec![]).may_change(&none, Some("")));
    }
}
