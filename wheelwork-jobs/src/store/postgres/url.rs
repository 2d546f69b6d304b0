//! Where the database is, as `psql` finds it: a URL, then the variables `PG*`, then the file `.pgpass`.

use super::connect::Described;
use percent_encoding::percent_decode_str;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

type Fault = Box<dyn Error + Send + Sync>;

/// How to reach a database.
pub(super) struct Target {
    pub(super) config: Config,
    /// The certificates that the server's must descend from. `None` means those of the system.
    pub(super) roots: Option<PathBuf>,
}

impl Target {
    /// Reads a URL, or words such as `host=... user=...`.
    pub(super) fn of_url(url: &str) -> Result<Self, Fault> {
        let (url, roots) = without_certificates(url);
        let config = url.parse().map_err(|error| Described(error).to_string())?;
        Ok(Self { config, roots: roots.filter(|roots| is_no_system(roots)) })
    }

    /// The same, with the variables of an environment for what the URL does not say.
    pub(super) fn of_environment(
        url: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Fault> {
        let Self { mut config, .. } = Self::of_url(url)?;
        set(&mut config, says_tls(url), &variable)?;
        let named = || variable("PGSSLROOTCERT").map(PathBuf::from);
        let roots = without_certificates(url).1.or_else(named).filter(|roots| is_no_system(roots));
        if config.get_password().is_none()
            && let Some(password) = password_of(&config, &variable)
        {
            config.password(password);
        }
        Ok(Self { config, roots })
    }

    /// Whether the connection must be encrypted. Nothing is gained by encryption without a certificate that
    /// is verified, so `prefer` goes without.
    pub(super) fn needs_tls(&self) -> bool {
        self.config.get_ssl_mode() == SslMode::Require
    }
}

/// Whether a URL has a mode of encryption. If so, that replaces any mode before it.
fn says_tls(url: &str) -> bool {
    let [one, other] = ["disable", "require"].map(|mode| {
        let preceded = match url.split_once('?').filter(|_| is_url(url)) {
            Some((place, query)) => format!("{place}?sslmode={mode}&{query}"),
            None if is_url(url) => format!("{url}?sslmode={mode}"),
            None => format!("sslmode={mode} {url}"),
        };
        Target::of_url(&preceded).map(|target| target.config.get_ssl_mode()).ok()
    });
    one == other
}

fn is_url(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// `system` stands for the certificates of the system.
fn is_no_system(roots: &Path) -> bool {
    roots.as_os_str() != "system"
}

/// Takes out what `tokio_postgres` does not read: `sslrootcert`, and the modes `verify-ca` and `verify-full`.
/// Each encrypted connection is verified in full.
fn without_certificates(url: &str) -> (String, Option<PathBuf>) {
    let mut roots = None;
    let keep = |word: &str| -> Option<String> {
        match word.split_once('=') {
            Some(("sslrootcert", path)) => {
                let path = percent_decode_str(path.trim_matches('\'')).decode_utf8_lossy();
                roots = Some(PathBuf::from(&*path));
                None
            }
            Some(("sslmode", "verify-ca" | "verify-full")) => Some("sslmode=require".to_owned()),
            Some(("sslmode", "allow")) => Some("sslmode=prefer".to_owned()),
            _ => Some(word.to_owned()),
        }
    };
    let rest = if is_url(url) {
        match url.split_once('?') {
            Some((place, query)) => {
                let query: Vec<_> = query.split('&').filter_map(keep).collect();
                format!("{place}?{}", query.join("&"))
            }
            None => url.to_owned(),
        }
    } else if url.contains("sslrootcert") || url.contains("sslmode") {
        // Each space counts: it may stand in a quoted password.
        let words: Vec<_> = url.split(|c: char| c.is_ascii_whitespace()).filter_map(keep).collect();
        words.join(" ")
    } else {
        url.to_owned()
    };
    (rest, roots)
}

/// Sets what the variables say and the configuration does not.
fn set(
    config: &mut Config,
    says_tls: bool,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<(), Fault> {
    let unless =
        |is_set: bool, name: &str| variable(name).filter(|value| !is_set && !value.is_empty());
    let number = |name: &str, text: &str| match text.trim().parse::<u16>() {
        Ok(number) => Ok(number),
        Err(_) => Err(format!("{name} is {text:?}: expected a number up to 65535")),
    };
    let has_host = !config.get_hosts().is_empty() || !config.get_hostaddrs().is_empty();
    let hosts = unless(has_host, "PGHOST").or((!has_host).then(|| "localhost".to_owned()));
    hosts.iter().flat_map(|hosts| hosts.split(',')).for_each(|host| _ = config.host(host));
    let ports = unless(!config.get_ports().is_empty(), "PGPORT");
    for port in ports.iter().flat_map(|ports| ports.split(',')) {
        config.port(number("PGPORT", port)?);
    }
    unless(config.get_dbname().is_some(), "PGDATABASE").map(|name| config.dbname(name));
    unless(config.get_user().is_some(), "PGUSER").map(|user| config.user(user));
    unless(config.get_password().is_some(), "PGPASSWORD").map(|password| config.password(password));
    unless(config.get_application_name().is_some(), "PGAPPNAME")
        .map(|name| config.application_name(name));
    unless(config.get_options().is_some(), "PGOPTIONS").map(|options| config.options(options));
    if let Some(seconds) = unless(config.get_connect_timeout().is_some(), "PGCONNECT_TIMEOUT") {
        let seconds = number("PGCONNECT_TIMEOUT", &seconds)?;
        if seconds > 0 {
            config.connect_timeout(Duration::from_secs(seconds.into()));
        }
    }
    if let Some(mode) = unless(says_tls, "PGSSLMODE") {
        let expected = "disable, allow, prefer, require, verify-ca or verify-full";
        let read = Target::of_url(&format!("sslmode={mode}"));
        let read = read.map_err(|_| format!("PGSSLMODE is {mode:?}: expected {expected}"))?;
        config.ssl_mode(read.config.get_ssl_mode());
    }
    Ok(())
}

/// The password in the file `.pgpass`. A file that others may read is not used.
fn password_of(config: &Config, variable: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let home = || Some(Path::new(&variable("HOME")?).join(".pgpass"));
    let path = variable("PGPASSFILE").map(PathBuf::from).or_else(home)?;
    let text = std::fs::read_to_string(&path).ok()?;
    if !is_private(&path) {
        log::warn!("{path:?} is not used: expected a file that only its owner can read");
        return None;
    }
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        _ => config.get_hostaddrs().first().map_or("localhost".to_owned(), ToString::to_string),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let user = config.get_user()?;
    let wanted = [&host, &*port, config.get_dbname().unwrap_or(user), user];
    text.lines().find_map(|line| password_in(line, wanted))
}

#[cfg(unix)]
fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 == 0)
}

#[cfg(not(unix))]
fn is_private(_: &Path) -> bool {
    true
}

/// The password of a line `host:port:database:user:password`, if the other four fit.
fn password_in(line: &str, wanted: [&str; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match c {
            ':' if fields.len() < 5 => fields.push(String::new()),
            c => {
                let c = if c == '\\' { characters.next().unwrap_or(c) } else { c };
                fields.last_mut()?.push(c);
            }
        }
    }
    let password = (fields.len() == 5).then(|| fields.pop()).flatten()?;
    let fits = |(field, wanted): (&String, &str)| field == "*" || field == wanted;
    fields.iter().zip(wanted).all(fits).then_some(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_pgpass_fits_with_stars_and_escapes() {
        let wanted = ["db.example", "5432", "shop", "anna"];
        let password = |line| password_in(line, wanted);
        assert_eq!(password("db.example:5432:shop:anna:secret"), Some("secret".into()));
        assert_eq!(password("*:*:*:anna:a\\:b\\\\c:d"), Some("a:b\\c:d".into()));
        assert_eq!(password("db.example:5433:*:*:secret"), None);
        assert_eq!(password("#*:*:*:*:secret"), None);
        assert_eq!(password("*:*:*:secret"), None);
    }

    /// A file that only its owner can read, and its folder.
    fn password_file(lines: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pass");
        std::fs::write(&file, lines).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, private).unwrap();
        (folder, file)
    }

    #[test]
    fn variables_say_what_the_url_does_not() {
        let (_folder, file) = password_file("db:6432:shop:anna:it's\n");
        let variable = |name: &str| match name {
            "PGHOST" => Some("db".to_owned()),
            "PGPORT" => Some("6432".to_owned()),
            "PGUSER" => Some("anna".to_owned()),
            "PGDATABASE" => Some("other".to_owned()),
            "PGSSLMODE" => Some("verify-full".to_owned()),
            "PGOPTIONS" => Some("-c search_path='a b'".to_owned()),
            "PGPASSFILE" => Some(file.to_str().unwrap().to_owned()),
            _ => None,
        };
        let target = Target::of_environment("dbname=shop", variable).unwrap();
        let config = &target.config;
        assert_eq!(config.get_hosts(), [Host::Tcp("db".into())]);
        assert_eq!((config.get_ports(), config.get_dbname()), (&[6432][..], Some("shop")));
        assert_eq!(config.get_password(), Some(&b"it's"[..]));
        assert_eq!(config.get_options(), Some("-c search_path='a b'"));
        assert!(target.needs_tls());
        let target = Target::of_environment("postgres://u@h/d?sslmode=disable", variable).unwrap();
        assert!(!target.needs_tls() && target.config.get_user() == Some("u"));
    }

    #[test]
    fn the_modes_of_encryption_are_those_of_a_url_and_others_are_refused() {
        let with = |mode: &str| {
            let variable = |name: &str| (name == "PGSSLMODE").then(|| mode.to_owned());
            Target::of_environment("host=h user=u", variable)
        };
        for mode in ["", "disable", "allow", "prefer"] {
            assert!(!with(mode).unwrap().needs_tls(), "{mode}");
        }
        for mode in ["require", "verify-ca", "verify-full"] {
            assert!(with(mode).unwrap().needs_tls(), "{mode}");
        }
        let error = with("verify_full").err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(r#"PGSSLMODE is "verify_full": expected"#), "{error}");
    }

    #[test]
    fn variables_do_not_replace_a_mode_or_a_certificate_of_the_url() {
        let variable = |name: &str| match name {
            "PGSSLMODE" => Some("disable".to_owned()),
            "PGSSLROOTCERT" => Some("/etc/ca.pem".to_owned()),
            _ => None,
        };
        let target = |url: &str| Target::of_environment(url, variable).unwrap();
        for says in ["host=h sslmode = require", "postgres://u@h/d?sslmode=require"] {
            assert!(target(says).needs_tls(), "{says}");
        }
        let system = target("postgres://u@h/d?sslmode=verify-full&sslrootcert=system");
        assert!(system.needs_tls() && system.roots.is_none());
        let required = |name: &str| (name == "PGSSLMODE").then(|| "require".to_owned());
        for silent in ["postgres://u:sslmode=x@h/d", "host=h password='sslmode=disable '"] {
            assert!(Target::of_environment(silent, required).unwrap().needs_tls(), "{silent}");
        }
    }

    #[test]
    fn the_password_is_that_of_the_address_if_there_is_no_name() {
        let (_folder, file) =
            password_file("localhost:*:*:*:one\n10.0.0.7:*:*:*:two\nh:*:*:*:three\n");
        let variable =
            |name: &str| (name == "PGPASSFILE").then(|| file.to_str().unwrap().to_owned());
        let password = |url: &str| {
            let target = Target::of_environment(url, variable).unwrap();
            target.config.get_password().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        assert_eq!(password("hostaddr=10.0.0.7 user=u").as_deref(), Some("two"));
        assert_eq!(password("host=h hostaddr=10.0.0.7 user=u").as_deref(), Some("three"));
        assert_eq!(password("user=u").as_deref(), Some("one"));
    }

    #[test]
    fn certificates_are_taken_out_of_a_url() {
        let url = "postgres://u@h/d?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem";
        let target = Target::of_url(url).unwrap();
        assert!(target.needs_tls());
        assert_eq!(target.roots, Some("/etc/ca.pem".into()));
        assert!(!Target::of_url("host=h user=u").unwrap().needs_tls());
        assert!(Target::of_url("postgres://u@h/d?sslmode=maybe").is_err());
        let spaces = "host=h user=u password='a  b' sslmode=verify-full";
        assert_eq!(Target::of_url(spaces).unwrap().config.get_password(), Some(&b"a  b"[..]));
    }
}
