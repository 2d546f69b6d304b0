//! Where a database is, in a word.

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Such as `localhost:5432/name`, without what is secret.
pub(super) fn place_of(config: &Config) -> String {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let name = |n: usize| match hosts.get(n) {
        Some(Host::Tcp(name)) => name.clone(),
        #[cfg(unix)]
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => addresses.get(n).map(ToString::to_string).unwrap_or_default(),
    };
    let ports = config.get_ports();
    let port = |n: usize| ports.get(n).or(ports.first()).copied().unwrap_or(5432);
    let all = 0..hosts.len().max(addresses.len());
    let servers: Vec<_> = all.map(|n| format!("{}:{}", name(n), port(n))).collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("{}/{database}", servers.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_all_servers_and_the_database() {
        let place = |url: &str| place_of(&url.parse().unwrap());
        assert_eq!(place("postgres://u:secret@h/d"), "h:5432/d");
        assert_eq!(place("postgres://u@a:1,b:2/d"), "a:1,b:2/d");
        assert_eq!(place("host=/run/postgresql port=7 user=u"), "/run/postgresql:7/u");
        assert_eq!(place("hostaddr=::1 user=u dbname=d"), "::1:5432/d");
    }
}
