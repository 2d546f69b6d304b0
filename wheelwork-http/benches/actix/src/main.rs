//! actix-web with its limits at 2 s, for `benches/attacks`: one worker, as the other servers have one thread.

use actix_web::rt::{System, time::sleep};
use actix_web::web::{self, Bytes, PayloadConfig};
use actix_web::{App, HttpServer};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(2);

/// No server lives longer.
const LIFE: Duration = Duration::from_secs(180);

static BIG: [u8; 8 * 1024 * 1024] = [b'.'; 8 * 1024 * 1024];

fn main() -> std::io::Result<()> {
    System::new().block_on(async {
        let app = || {
            App::new()
                .app_data(PayloadConfig::new(64 << 20))
                .route("/", web::get().to(async || "hello"))
                .route("/upload", web::post().to(async |body: Bytes| format!("{} bytes", body.len())))
                .route("/big", web::get().to(async || Bytes::from_static(&BIG)))
        };
        let server = HttpServer::new(app)
            .workers(1)
            .max_connections(100_000)
            .backlog(4096)
            .keep_alive(LIMIT)
            .client_request_timeout(LIMIT)
            .client_disconnect_timeout(LIMIT)
            .bind_auto_h2c(("127.0.0.1", 0))?;
        println!("{}", server.addrs()[0]);
        let server = server.disable_signals().run();
        let handle = server.handle();
        actix_web::rt::spawn(async move {
            sleep(LIFE).await;
            handle.stop(false).await;
        });
        server.await
    })
}
