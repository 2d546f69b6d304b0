//! Encrypted connections, with a certificate of the test's own.

use crate::common::postgres;
use crate::program::{Program, run_with};
use std::path::Path;
use std::process::Command;
use tokio::runtime::Runtime;
use wheelwork_jobs::{Jobs, NewJob, Postgres};

/// A server that refuses connections without encryption, and the file with its certificate. `None` if
/// PostgreSQL or openssl is missing.
fn server(folder: &Path) -> Option<(postgres::Server, String)> {
    let (key, certificate) = (folder.join("key.pem"), folder.join("certificate.pem"));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-new", "-x509", "-days", "2", "-nodes", "-newkey", "ec"]);
    openssl.args(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost"]);
    openssl.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    let made = openssl.arg("-keyout").arg(&key).arg("-out").arg(&certificate).output().ok()?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let server = postgres::own_server()?;
    server.encrypt(&key, &certificate);
    Some((server, certificate.to_str()?.to_owned()))
}

#[test]
fn library_and_program_connect_with_encryption_and_verify_the_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let Some((server, certificate)) = server(folder.path()) else { return };
    let url = server.url("postgres").replace("127.0.0.1", "localhost");
    let url = |more: &str| format!("{url}?{more}");
    let good = url(&format!("sslmode=require&sslrootcert={certificate}"));
    Runtime::new().unwrap().block_on(async {
        let jobs = Jobs::open(Postgres::new(&good).unwrap()).await.unwrap();
        jobs.schedule(NewJob::new("mail", &1).unwrap()).await.unwrap();
        let refused = Jobs::open(Postgres::new(&url("sslmode=disable")).unwrap()).await;
        assert!(refused.is_err(), "the server takes connections without encryption");
        // The system does not trust the certificate.
        let refused = Jobs::open(Postgres::new(&url("sslmode=verify-full")).unwrap()).await;
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("certificate"), "{text}");
        jobs.stop(std::time::Duration::ZERO).await.unwrap();
    });
    let list = Program::new("--postgres", &good).run(&["list"]);
    assert!(list.code == 0 && list.out.contains("mail"), "{}", list.err);
    let port = server.port().to_string();
    let variables = [
        ("PGHOST", "localhost"),
        ("PGPORT", &port),
        ("PGUSER", "postgres"),
        ("PGDATABASE", "postgres"),
        ("PGSSLMODE", "verify-full"),
        ("PGSSLROOTCERT", &certificate),
    ];
    let list = run_with(&variables, ["--postgres", "", "list"]);
    assert!(list.code == 0 && list.out.contains("mail"), "{}", list.err);
}
