//! What other nodes tell, by `NOTIFY`.

use super::connect::Connector;
use super::sql;
use crate::job::JobId;
use crate::store::{Claim, NodeId, Notice};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(500);

/// Listens for ever. After each interruption the node looks for itself.
pub(super) async fn run(connector: &Connector, notices: UnboundedSender<Notice>) {
    loop {
        if let Err(error) = listen(connector, &notices).await {
            log::warn!("cannot listen to the database: {error}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn listen(
    connector: &Connector,
    notices: &UnboundedSender<Notice>,
) -> Result<(), tokio_postgres::Error> {
    let (sender, mut payloads) = unbounded_channel();
    let client = connector.connect(Some(sender)).await?;
    client.batch_execute(sql::LISTEN).await?;
    let _ = notices.send(Notice::Look); // the node may have stopped meanwhile
    while let Some(payload) = payloads.recv().await {
        match parse(&payload) {
            Some(notice) => _ = notices.send(notice),
            None => log::warn!("a notice {payload:?}: expected `look` or `drop OWNER JOB EPOCH`"),
        }
    }
    Ok(())
}

fn parse(payload: &str) -> Option<Notice> {
    let mut words = payload.split(' ');
    let notice = match words.next()? {
        "look" => Notice::Look,
        "drop" => {
            let node = NodeId(words.next()?.parse().ok()?);
            let id: JobId = words.next()?.parse().ok()?;
            let epoch = words.next()?.parse().ok()?;
            Notice::Drop(node, Claim { id, epoch })
        }
        _ => return None,
    };
    words.next().is_none().then_some(notice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_are_read_and_others_are_refused() {
        let id = "0190163d-8694-739b-aea5-966c26f8ad91";
        let claim = Claim { id: id.parse().unwrap(), epoch: 3 };
        assert_eq!(parse("look"), Some(Notice::Look));
        assert_eq!(parse(&format!("drop 12 {id} 3")), Some(Notice::Drop(NodeId(12), claim)));
        for strange in ["", "look ", "drop", "drop 12 17 3", "drop x", &format!("drop 1 {id} 3 4")]
        {
            assert_eq!(parse(strange), None, "{strange:?}");
        }
    }
}
