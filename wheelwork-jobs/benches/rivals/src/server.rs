//! A database for each measurement.

use crate::{Failed, postgres};
use std::sync::atomic::{AtomicU32, Ordering};
use tokio_postgres::{Client, NoTls};

pub struct Server {
    /// Without a database.
    url: String,
    number: AtomicU32,
}

impl Server {
    pub fn new(url: Option<String>) -> Result<Self, Failed> {
        let url = match url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => {
                let server = postgres::server().ok_or("expected PostgreSQL, or --postgres URL")?;
                server.url("").trim_end_matches('/').to_owned()
            }
        };
        Ok(Self { url, number: AtomicU32::new(0) })
    }

    /// A new database, in place of one of an earlier run.
    pub async fn database(&self) -> Result<String, Failed> {
        let name = format!("wheelwork_rivals_{}", self.number.fetch_add(1, Ordering::Relaxed));
        let admin = connect(&format!("{}/postgres", self.url)).await?;
        admin.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await?;
        admin.batch_execute(&format!("CREATE DATABASE {name}")).await?;
        Ok(format!("{}/{name}", self.url))
    }

    /// What the figures depend on.
    pub async fn describe(&self) -> Result<String, Failed> {
        let client = connect(&format!("{}/postgres", self.url)).await?;
        let settings = "SELECT current_setting('server_version'), current_setting('fsync'), \
                        current_setting('synchronous_commit')";
        let row = client.query_one(settings, &[]).await?;
        let [version, fsync, commit]: [String; 3] = [row.get(0), row.get(1), row.get(2)];
        Ok(format!("PostgreSQL {version}, fsync = {fsync}, synchronous_commit = {commit}"))
    }
}

pub async fn connect(url: &str) -> Result<Client, Failed> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
